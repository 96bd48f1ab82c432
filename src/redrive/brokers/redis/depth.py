"""How much of a group's work is where."""

from typing import Any

from redrive.brokers.redis.entry import from_millis
from redrive.brokers.redis.groups import not_found
from redrive.brokers.redis.keys import GroupKeys
from redrive.brokers.redis.scripts import run
from redrive.brokers.redis.wire import Wire
from redrive.core.ports import Depth

_STRETCH = 1_000


async def measure(wire: Wire, keys: GroupKeys, *, dlq: str) -> Depth:
    """Every message of a group in exactly one place, by one look. Raises `QueueNotFound`.

    Where somebody deletes entries from the stream, the server has no count of what is new there: it is counted in
    stretches, while others go on.
    """
    named = (keys.queue, keys.lane, keys.due, keys.stories, keys.paused, keys.delayed, dlq, keys.meta)
    found: list[Any] = await run(wire, "depth", named, (keys.name, ""))
    if not found:
        raise not_found(keys)
    waiting, in_flight, scheduled, held, dead, oldest_at, next_due_at, paused, after = found
    return Depth(
        waiting=waiting + (await _count(wire, keys.queue, after) if after else 0),
        in_flight=in_flight,
        scheduled=scheduled,
        held=held,
        dead=dead,
        oldest_at=from_millis(oldest_at),
        next_due_at=from_millis(next_due_at),
        paused=paused[1:].decode("utf-8", "backslashreplace") if paused else None,
    )


async def _count(wire: Wire, stream: str, after: bytes) -> int:
    counted, stretch = 0, _STRETCH
    while stretch == _STRETCH:
        answer: list[Any] = await run(wire, "count_after", (stream,), (after, _STRETCH))
        stretch, after = answer
        counted += stretch
    return counted
