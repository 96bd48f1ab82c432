"""What the client hands over, as entries of a group."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from redrive.brokers.kafka.entry import Entry, entry_in_lane, entry_in_queue
from redrive.brokers.kafka.record import at_millis, read_of
from redrive.brokers.kafka.share import Share
from redrive.core.message import Message

_new: Final = tuple.__new__  # at a third of the cost of calling the class
_begin: Final = Entry.__new__

Reader: TypeAlias = Callable[[Any, Share, int], Entry]
"""Makes an entry of a client's message at an offset of a share."""


def reader_of(topic: str, *, queue: str) -> Reader:
    """A reader for one topic: the queue's own, or its lane."""

    def read(message: Any, share: Share, offset: int) -> Entry:
        found = read_of(message)
        entry = entry_in_queue(found) if topic == queue else entry_in_lane(found, queue=queue)
        entry.share, entry.offset = share, offset
        return entry

    millis, at = -1, at_millis(0)  # messages that were sent together share their instant

    def read_plain(message: Any, share: Share, offset: int) -> Entry:
        nonlocal millis, at
        if message.headers():
            return read(message, share, offset)
        when = message.timestamp()[1]
        if when != millis:
            millis, at = when, at_millis(when)
        entry = _begin(Entry)
        name = f"{share.prefix}{offset}"
        entry.message = _new(Message, (name, queue, message.value() or b"", (), message.key(), at, None, ""))
        entry.share = share
        entry.offset = offset
        entry.is_new = True
        return entry

    return read_plain if topic == queue else read
