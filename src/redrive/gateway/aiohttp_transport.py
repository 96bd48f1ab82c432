"""The transport on aiohttp: a tenth of the CPU that other clients need for a call."""

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError

from redrive.core.errors import BadAnswer, GatewayError, RequestRejected, TransportFault
from redrive.gateway.transport import Post, Reply, StreamedReply

_UNSENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_FAULTS: Final = (aiohttp.ClientError, aiohttp.InvalidURL, OSError, asyncio.IncompleteReadError)
_SMALL: Final = 64 * 1024


class AiohttpTransport:
    """A `Transport` on aiohttp. Its connections are opened on the event loop of the first call.

    There is no limit of connections here: how many calls are in flight is decided above.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def post(self, post: Post) -> Reply:
        try:
            async with self._call(post) as response:
                body = await _read(response, post.max_answer_bytes)
                return Reply(response.status, _lower(response), body)
        except _FAULTS as error:
            raise _fault_of(error) from error

    @asynccontextmanager
    async def stream(self, post: Post) -> AsyncIterator[StreamedReply]:
        try:
            async with self._call(post) as response:
                chunks = _chunks(response, post.max_answer_bytes)
                yield StreamedReply(response.status, _lower(response), chunks)
        except _FAULTS as error:
            raise _fault_of(error) from error

    async def aclose(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()

    def _call(self, post: Post) -> aiohttp.client._RequestContextManager:
        session = self._session or self._open()
        timeout = _patience(post.connect_timeout)
        return session.post(post.url, data=post.body, headers=post.headers, allow_redirects=False, timeout=timeout)

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise TransportFault("the transport is closed")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "redrive", "Content-Type": "application/json"},
            trust_env=False,
        )
        return self._session


def _fault_of(error: BaseException) -> GatewayError:
    """The one place where aiohttp's errors become ours."""
    if isinstance(error, _UNSENT):
        return TransportFault(f"no connection: {_words(error)}")
    if isinstance(error, aiohttp.InvalidURL):
        return RequestRejected(f"no valid address: {_words(error)}")
    if isinstance(error, aiohttp.ClientPayloadError):
        kind = BadAnswer if isinstance(error.__cause__, ContentEncodingError) else TransportFault
        return kind(f"the answer broke off: {_words(error)}", possibly_executed=True)
    return TransportFault(f"the connection broke: {_words(error)}", possibly_executed=True)


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole body, if it is no longer than `limit`, decoded."""
    length = response.content_length
    if length is not None and length <= min(limit, _SMALL) and "Content-Encoding" not in response.headers:
        return await response.read()
    return b"".join([chunk async for chunk in _chunks(response, limit)])


async def _chunks(response: aiohttp.ClientResponse, limit: int) -> AsyncIterator[bytes]:
    """The body as it comes. One that is too long is left: its connection is closed."""
    left = limit
    async for chunk in response.content.iter_any():
        left -= len(chunk)
        if left < 0:
            response.close()
            raise BadAnswer(f"the answer has more than {limit} bytes", possibly_executed=True)
        yield chunk


def _lower(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


@functools.cache
def _patience(connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=connect)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
