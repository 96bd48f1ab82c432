"""Dead letters as entries of a stream: fields that redis-cli shows, the payload first and byte for byte."""

from typing import Final

from redrive.brokers.redis.pieces import in_pieces
from redrive.brokers.redis.traits import LARGEST_FIELD
from redrive.core.letter import DeadLetter
from redrive.core.wire import bounded, entry_body, split_fields

PAYLOAD: Final = b"payload"
LARGEST_ENTRY: Final = 1024 * 1024 * 1024
"""What a server takes as one entry, whatever it is told."""
_LARGE: Final = 64 * 1024 * 1024
_ROOM: Final = 1024 * 1024


def letter_fields(letter: DeadLetter, *, largest: int = LARGEST_FIELD) -> list[bytes]:
    """The fields of a letter's entry. What an entry has no room for is left out, in the order of `bounded`."""
    own, shared = split_letter(letter, largest=largest)
    return [*own, *shared]


def split_letter(letter: DeadLetter, *, largest: int = LARGEST_FIELD) -> tuple[list[bytes], tuple[bytes, ...]]:
    """The same in two parts, one after the other: the letter's own, and what others say too."""
    payload = entry_body(letter)
    if len(payload) + (sum([len(value) for _, value in letter.headers]) if letter.headers else 0) > _LARGE:
        letter = bounded(letter, limit=max(LARGEST_ENTRY - len(payload) - _ROOM, 0))
    own, shared = split_fields(letter)
    if payload or letter.payload is not None:
        own = [PAYLOAD, payload, *own]
    return in_pieces(own, largest=largest), shared
