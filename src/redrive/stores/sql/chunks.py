"""Long lists in pieces: a statement takes a bounded number of parameters, a transaction a bounded time."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

CHUNK = 1000


def chunks(values: Sequence[T], *, size: int = CHUNK) -> Iterator[Sequence[T]]:
    """The values in pieces of at most `size`."""
    return (values[start : start + size] for start in range(0, len(values), size))
