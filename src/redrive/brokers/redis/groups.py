"""Watching over groups: which there are, who works in them, pausing them, letting go what they hold."""

import contextlib
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from redrive.brokers.process import is_dead
from redrive.brokers.redis.entry import from_millis, whole_millis
from redrive.brokers.redis.errors import code_of, translate
from redrive.brokers.redis.keys import QUEUES, GroupKeys, QueueKeys
from redrive.brokers.redis.scripts import LARGEST_CALL, run
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.wire import Wire
from redrive.core.errors import QueueNotFound
from redrive.core.place import named
from redrive.core.ports import Alive, Capabilities

HEARD_OF: Final = whole_millis(timedelta(seconds=30))


async def list_queues(server: Server, capabilities: Capabilities) -> list[tuple[str, str]]:
    """Every (queue, group): the queues that were published or subscribed to, and what belongs to them if it exists."""
    async with server.wire(QUEUES) as wire:
        known = {name.decode() for name in await wire.call("SMEMBERS", QUEUES)}
        belonging = {named(pattern, name) for name in known for pattern in (capabilities.dlq, capabilities.outcomes)}
        names = sorted(known | belonging)
        if not server.address.is_cluster:
            return await _groups(wire, names)
    found = []
    for name in names:
        async with server.wire(name) as wire:
            found += await _groups(wire, [name])
    return found


async def pause(wire: Wire, keys: GroupKeys, *, why: str | None) -> None:
    """Pause a group, or let it go on. Raises `QueueNotFound`."""
    told = ("0", "") if why is None else ("1", why)
    (known,) = await run(wire, "pause", (keys.queue, keys.paused), (keys.name, *told))
    if not known:
        raise not_found(keys)


async def free(wire: Wire, keys: GroupKeys) -> int:
    """Let what is held run again, some at a time; return how many. Raises `QueueNotFound`."""
    named_keys = (keys.queue, keys.lane, keys.due, keys.stories)
    freed = 0
    for prefix in ("m", "l"):
        start = b"-"
        while start:
            answer: list[Any] = await run(wire, "free", named_keys, (keys.name, "", prefix, start, LARGEST_CALL))
            some, start = answer
            if some < 0 and prefix == "m":
                raise not_found(keys)
            freed += max(some, 0)
    return freed


async def workers(wire: Wire, keys: GroupKeys) -> list[Alive]:
    """The workers heard of lately that are not proven dead. Raises `QueueNotFound`."""
    if not any(group == keys.name for _, group in await _groups(wire, [keys.queue])):
        raise not_found(keys)
    seconds, micros = await wire.call("TIME")
    now = int(seconds) * 1000 + int(micros) // 1000
    records = await wire.call("HGETALL", keys.workers)
    found = []
    for owner, record in zip(records[::2], records[1::2], strict=True):
        with contextlib.suppress(ValueError, LookupError, TypeError):  # not of our making
            told = json.loads(record)
            if told["seen_at"] >= now - HEARD_OF and not is_dead(told["process"]):
                found.append(_alive(owner.decode(), told))
    return sorted(found, key=lambda alive: alive.name)


def not_found(keys: GroupKeys) -> QueueNotFound:
    """What to raise for a group that does not exist."""
    return QueueNotFound(f"no queue {keys.queue!r} with a group {keys.name!r} on this server")


async def _groups(wire: Wire, names: Sequence[str]) -> list[tuple[str, str]]:
    """The groups of these streams, an empty one where there is none; what does not exist is left out."""
    asked = [(("XINFO", "GROUPS", name), ("EXISTS", QueueKeys(name).delayed)) for name in names]
    answers = await wire.calls([command for pair in asked for command in pair])
    found: list[tuple[str, str]] = []
    for name, groups, has_delayed in zip(names, answers[::2], answers[1::2], strict=True):
        if isinstance(groups, list):
            found += [(name, group[1].decode("utf-8", "backslashreplace")) for group in groups] or [(name, "")]
        elif code_of(groups) != "WRONGTYPE" and not isinstance(refused := translate(groups), QueueNotFound):
            raise refused
        elif has_delayed == 1:
            found.append((name, ""))
    return found


def _alive(owner: str, told: dict[str, Any]) -> Alive:
    seen_at = from_millis(told["seen_at"])
    assert seen_at is not None  # noqa: S101 - a number
    paused, state = told.get("paused"), str(told.get("state", ""))
    return Alive(owner, told["host"], told["pid"], told["version"], seen_at=seen_at, paused=paused, state=state)
