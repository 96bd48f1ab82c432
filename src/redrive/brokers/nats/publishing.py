"""Publishing: one message with the server's word for it, or many in one batch, all or none."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from redrive.brokers.nats.errors import TooLarge
from redrive.brokers.nats.heading import DUE, terms_of, to_micros, write_heading
from redrive.brokers.nats.link import Letter, Link
from redrive.brokers.nats.names import later_of
from redrive.brokers.nats.office import Office
from redrive.brokers.nats.streams import Stream
from redrive.core.duration import NOW
from redrive.core.errors import ConfigError
from redrive.core.message import Message, without_reserved

_AT_ONCE: Final = 1000  # what a server takes as one batch


async def publish(office: Office, queue: str, messages: Sequence[Message], *, delay: timedelta) -> Sequence[str]:
    """Publish; the ids in order. Delayed ones are published by the server, when they are due."""
    stream = await office.streams.ensure(queue)
    if delay > NOW:
        return await _later(office, stream, queue, messages, due_at=office.clock.now() + delay)
    letters = [
        Letter(queue, bytes(one.body), write_heading(without_reserved(one.headers), terms_of(one))) for one in messages
    ]
    await _check(office.link, letters)
    if len(letters) == 1 or not stream.config.get("allow_atomic"):
        return [await _one(office.link, letter) for letter in letters]
    ids: list[str] = []
    for start in range(0, len(letters), _AT_ONCE):
        ids += await _batch(office.link, stream, letters[start : start + _AT_ONCE])
    return ids


async def _check(link: Link, letters: Sequence[Letter]) -> None:
    largest = (await link.client()).max_payload
    for letter in letters:
        if letter.size > largest:
            raise TooLarge(f"nats: a message of {letter.size} bytes, and the server takes {largest} (max_payload)")


async def _one(link: Link, letter: Letter) -> str:
    found = await link.publish_one(letter)
    return f"{found.stream}:{found.seq}"


async def _batch(link: Link, stream: Stream, letters: Sequence[Letter]) -> list[str]:
    """What the server gets without the end of its batch, it forgets."""
    name = uuid4().hex
    made = [
        letter._replace(heading={**(letter.heading or {}), "Nats-Batch-Id": name, "Nats-Batch-Sequence": str(number)})
        for number, letter in enumerate(letters, 1)
    ]
    last = made[-1]._replace(heading={**(made[-1].heading or {}), "Nats-Batch-Commit": "1"})
    await link.send(made[:-1])
    end = (await link.publish_one(last)).seq
    return [f"{stream.name}:{seq}" for seq in range(end - len(letters) + 1, end + 1)]


async def _later(
    office: Office, stream: Stream, queue: str, messages: Sequence[Message], *, due_at: datetime
) -> Sequence[str]:
    if not stream.config.get("allow_msg_schedules") or not stream.takes(later_of(queue, "x")):
        raise ConfigError(
            f"delay: stream {stream.name!r} was begun by others and keeps no delayed messages: it would need"
            f" allow_msg_schedules, and {later_of(queue)} among its subjects"
        )
    letters = []
    for message in messages:
        more = {
            **terms_of(message),
            DUE: str(to_micros(due_at)),
            "Nats-Schedule": f"@at {due_at:%Y-%m-%dT%H:%M:%S.%f}Z",
            "Nats-Schedule-Target": queue,
        }
        heading = write_heading(without_reserved(message.headers), more)
        letters.append(Letter(later_of(queue, uuid4().hex), bytes(message.body), heading))
    await _check(office.link, letters)
    for letter in letters:
        await office.link.publish_one(letter)
    return [f"{stream.name}:{letter.subject.rpartition('.')[2]}" for letter in letters]
