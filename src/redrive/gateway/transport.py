"""The port through which calls go out, and what comes back."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol


class Reply(NamedTuple):
    """What a server answered: its status, its headers by lower-case names, and the body, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class StreamedReply(NamedTuple):
    """What a server answers bit by bit."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Post(NamedTuple):
    """One call: where to, with which headers and which body, and how many bytes of an answer are taken at most."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    connect_timeout: float
    max_answer_bytes: int


class Transport(Protocol):
    """An HTTP client. Safe for many tasks of one event loop.

    It follows no redirect, retries nothing and sets no limit to the whole call: who calls it cancels it. A cancelled or
    failed call leaves no connection behind that would be used again.
    """

    async def post(self, post: Post) -> Reply:
        """The reply, whatever its status.

        Raises `TransportFault` if there is none, `possibly_executed` unless the request was surely not written;
        `BadAnswer` if its body is too large or cannot be decoded.
        """
        ...

    def stream(self, post: Post) -> AbstractAsyncContextManager[StreamedReply]:
        """The same, with the body as it comes. Raises the same, also while the body is read."""
        ...

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
        ...
