"""Dead letters as entries of a stream: fields that redis-cli shows, the payload first and byte for byte."""

from functools import cache
from typing import Final

from redrive.brokers.redis.pieces import in_pieces
from redrive.brokers.redis.traits import LARGEST_FIELD
from redrive.core.letter import DeadLetter
from redrive.core.wire import bounded, to_fields

PAYLOAD: Final = b"payload"
LARGEST_ENTRY: Final = 1024 * 1024 * 1024
"""What a server takes as one entry, whatever it is told."""
_LARGE: Final = 64 * 1024 * 1024
_ROOM: Final = 1024 * 1024


def letter_fields(letter: DeadLetter, *, largest: int = LARGEST_FIELD) -> list[bytes]:
    """The fields of a letter's entry. What an entry has no room for is left out, in the order of `bounded`."""
    payload = letter.payload or b""
    if len(payload) + sum([len(value) for _, value in letter.headers]) > _LARGE:
        letter = bounded(letter, limit=max(LARGEST_ENTRY - len(payload) - _ROOM, 0))
    fields = [PAYLOAD, payload] if letter.payload is not None else []
    for name, value in to_fields(letter):
        fields += (_name(name), value)
    return in_pieces(fields, largest=largest)


@cache
def _name(name: str) -> bytes:
    """The name of a field as bytes. There are some thirty of them, and each letter has most."""
    return name.encode()
