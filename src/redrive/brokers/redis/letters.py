"""Dead letters as entries of a stream: fields that redis-cli shows, the payload first and byte for byte."""

from functools import lru_cache
from typing import Final

from redrive.brokers.redis.pieces import in_pieces
from redrive.brokers.redis.traits import LARGEST_FIELD
from redrive.core.letter import DeadLetter
from redrive.core.wire import Split, bounded, entry_body, split_fields

PAYLOAD: Final = b"payload"
LARGEST_ENTRY: Final = 1024 * 1024 * 1024
"""What a server takes as one entry, whatever it is told."""
_LARGE: Final = 64 * 1024 * 1024
_ROOM: Final = 1024 * 1024


def letter_fields(letter: DeadLetter, *, largest: int = LARGEST_FIELD) -> list[bytes]:
    """The fields of a letter's entry. What an entry has no room for is left out, in the order of `bounded`."""
    names, values, shared = split_letter(letter, largest=largest)
    own = [part for pair in zip(names, values, strict=True) for part in pair]
    return [*own, *shared]


def split_letter(letter: DeadLetter, *, largest: int = LARGEST_FIELD) -> Split:
    """The same in parts: names and values that are the letter's own, and after them what others say too."""
    payload = entry_body(letter)
    if len(payload) + (sum([len(value) for _, value in letter.headers]) if letter.headers else 0) > _LARGE:
        letter = bounded(letter, limit=max(LARGEST_ENTRY - len(payload) - _ROOM, 0))
    names, values, shared = split_fields(letter)
    if payload or letter.payload is not None:
        names, values = _after_payload(tuple(names)), [payload, *values]
    if max(map(len, values)) > largest:
        pieces = in_pieces([part for pair in zip(names, values, strict=True) for part in pair], largest=largest)
        names, values = pieces[::2], pieces[1::2]
    return names, values, shared


@lru_cache(maxsize=16)
def _after_payload(names: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """One tuple for most letters: by that `Order` knows without a look that their names are the same."""
    return PAYLOAD, *names
