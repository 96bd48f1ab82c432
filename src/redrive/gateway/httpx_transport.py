"""The transport on httpx, for programs that have it anyway. It costs several times as much as aiohttp."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from redrive.core.errors import BadAnswer, MissingExtra, RequestRejected, TransportFault
from redrive.gateway.transport import Post, Reply, StreamedReply

try:
    import httpx
except ImportError as error:
    raise MissingExtra("HttpxTransport", extra="httpx") from error

SHARE: Final = 8
"""Calls at once in one client: its pool is walked through for each of them, so many small pools cost less than one."""

_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout)


class HttpxTransport:
    """A `Transport` on httpx, given to a gateway as `Outside(transport=HttpxTransport())`. Whoever made it closes it.

    There is no limit of connections here: how many calls are in flight is decided above.
    """

    def __init__(self) -> None:
        self._clients: dict[httpx.AsyncClient, int] = {}  # with the calls in each
        self._closed = False

    async def post(self, post: Post) -> Reply:
        with _faults():
            async with self._call(post) as response:
                body = b"".join([chunk async for chunk in _chunks(response, post.max_answer_bytes)])
                return Reply(response.status_code, _lower(response), body)

    @asynccontextmanager
    async def stream(self, post: Post) -> AsyncIterator[StreamedReply]:
        with _faults():
            async with self._call(post) as response:
                chunks = _chunks(response, post.max_answer_bytes)
                yield StreamedReply(response.status_code, _lower(response), chunks)

    async def aclose(self) -> None:
        self._closed = True
        clients, self._clients = self._clients, {}
        for client in clients:
            await client.aclose()

    @asynccontextmanager
    async def _call(self, post: Post) -> AsyncIterator[httpx.Response]:
        client = self._client()
        self._clients[client] += 1
        try:
            timeout = httpx.Timeout(None, connect=post.connect_timeout)
            headers = {**post.headers}
            async with client.stream("POST", post.url, content=post.body, headers=headers, timeout=timeout) as response:
                yield response
        finally:
            if client in self._clients:
                self._clients[client] -= 1

    def _client(self) -> httpx.AsyncClient:
        """One with room, the fullest first."""
        if self._closed:
            raise TransportFault("the transport is closed")
        for client, calls in self._clients.items():
            if calls < SHARE:
                return client
        made = httpx.AsyncClient(
            headers={"User-Agent": "redrive", "Content-Type": "application/json"},
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=SHARE),
            follow_redirects=False,
            trust_env=False,
        )
        self._clients[made] = 0
        return made


@contextmanager
def _faults() -> Iterator[None]:
    """The one place where httpx's errors become ours."""
    try:
        yield
    except _UNSENT as error:
        raise TransportFault(f"no connection: {_words(error)}") from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise RequestRejected(f"no valid address: {_words(error)}") from error
    except httpx.DecodingError as error:
        raise BadAnswer(f"the answer cannot be decoded: {_words(error)}", possibly_executed=True) from error
    except (httpx.HTTPError, httpx.StreamError, OSError) as error:
        raise TransportFault(f"the connection broke: {_words(error)}", possibly_executed=True) from error


async def _chunks(response: httpx.Response, limit: int) -> AsyncIterator[bytes]:
    """The body as it comes. One that is too long is left: its connection is closed."""
    left = limit
    async for chunk in response.aiter_bytes():
        left -= len(chunk)
        if left < 0:
            await response.aclose()
            raise BadAnswer(f"the answer has more than {limit} bytes", possibly_executed=True)
        yield chunk


def _lower(response: httpx.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
