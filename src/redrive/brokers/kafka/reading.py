"""What the client hands over, as messages and entries of a group."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, groupby
from operator import sub
from typing import Any, Final, TypeAlias

from confluent_kafka import Message as ClientMessage

from redrive.brokers.kafka.entry import Entry, entry_as_written, entry_in_lane, entry_in_queue
from redrive.brokers.kafka.record import headers_of, read_of
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.stretch import Stretch
from redrive.core.message import RESERVED_PREFIX, Headers

_partition: Final[Any] = ClientMessage.partition  # of what is a message, they are known
_offset: Final[Any] = ClientMessage.offset

Reader: TypeAlias = Callable[[Any, Share, int], Entry]
"""Makes an entry of a client's message at an offset of a share."""


def reader_of(topic: str, *, queue: str) -> Reader:
    """A reader for one topic: the queue's own, or its lane."""

    def read(message: Any, share: Share, offset: int) -> Entry:
        entry = None if topic == queue else entry_as_written(message, share, offset, queue=queue)
        if entry is None:
            found = read_of(message)
            entry = entry_in_queue(found) if topic == queue else entry_in_lane(found, queue=queue)
            entry.share, entry.offset = share, offset
        return entry

    return read


def parted(found: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Messages, and what is none: the client also tells of errors, and of the end of a partition."""
    if not any(map(ClientMessage.error, found)):
        return found, ()
    return [each for each in found if each.error() is None], [each for each in found if each.error() is not None]


def partitions_of(messages: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
    """What was read of each partition in turn, in the order in which it came."""
    if not messages:
        return
    numbers: list[int] = [*map(_partition, messages)]
    if numbers.count(numbers[0]) == len(numbers):
        yield numbers[0], [*messages]
        return
    start = 0
    for number, some in groupby(numbers):
        end = start + len([*some])
        yield number, [*messages[start:end]]
        start = end


def unbroken(messages: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Messages of one partition in rows without a gap, each with its first offset."""
    offsets: list[int] = [*map(_offset, messages)]
    if offsets == [*range(offsets[0], offsets[0] + len(offsets))]:
        yield offsets[0], [*messages]
        return
    start = 0
    for _, some in groupby(map(sub, offsets, count())):
        end = start + len([*some])
        yield offsets[start], [*messages[start:end]]
        start = end


def stretch_of(messages: Sequence[Any], share: Share, first: int) -> Stretch | None:
    """New messages that follow each other from `first` on; None if a header of ours is in one."""
    headers: Sequence[Headers] | None = None
    found: list[Any] = [*map(ClientMessage.headers, messages)]
    if found.count(None) < len(found):  # most messages have none
        if any(name.startswith(RESERVED_PREFIX) for some in found if some for name, _ in some):
            return None
        headers = [headers_of(some or ()) for some in found]
    keys: list[bytes | None] = [*map(ClientMessage.key, messages)]
    values: list[bytes | None] = [*map(ClientMessage.value, messages)]
    if None in values:
        values = [value or b"" for value in values]
    bodies: Any = values
    return Stretch(share, first, messages, bodies, keys if keys.count(None) < len(keys) else None, headers)
