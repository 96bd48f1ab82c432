"""The messages of all benchmarks: 200 bytes of JSON, every tenth marked to fail. Standard library only."""

from collections.abc import Iterator

FAILS = b'"fails":true'
_SIZE = 200


class Failed(Exception):
    """What a handler raises for a message that is marked."""


def bodies(first: int, count: int, *, spared: int = 0) -> Iterator[bytes]:
    """The bodies of `count` messages, numbered from `first`; those below `spared` are not marked."""
    for number in range(first, first + count):
        fails = number % 10 == 0 and number >= spared
        start = b'{"number":%d,"fails":%s,"text":"' % (number, b"true" if fails else b"false")
        yield start.ljust(_SIZE - 2, b"x") + b'"}'


def marked(messages: int, *, spared: int = 0) -> int:
    """How many of the first `messages` are marked to fail."""
    return len(range(0, messages, 10)) - len(range(0, min(spared, messages), 10))
