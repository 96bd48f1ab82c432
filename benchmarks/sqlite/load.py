"""The messages of this benchmark: 200 bytes of JSON, every tenth marked to fail. Standard library only."""

from collections.abc import Iterator

FAILS = b'"fails":true'
_SIZE = 200


def bodies(first: int, count: int) -> Iterator[bytes]:
    """The bodies of `count` messages, numbered from `first`."""
    for number in range(first, first + count):
        start = b'{"number":%d,"fails":%s,"text":"' % (number, b"true" if number % 10 == 0 else b"false")
        yield start.ljust(_SIZE - 2, b"x") + b'"}'
