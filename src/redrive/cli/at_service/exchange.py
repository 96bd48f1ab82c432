"""One request to a service and its answer, over a connection of their own; waiting is done in a thread."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException, HTTPResponse, IncompleteRead
from types import TracebackType
from typing import Self, TypeVar

from redrive.cli.at_service.address import Address
from redrive.cli.at_service.problems import away, stranger
from redrive.core.errors import ConfigError

ANSWER_WITHIN = 300.0  # seconds: a purge of very many letters takes its time

Value = TypeVar("Value")


class Exchange:
    """Asks once; use it as a context manager. Interrupted, it is cut off at once, whatever it waits for.

    Each method raises `StoreUnavailable` if nobody answers, or not to the end, and `ConfigError` if whoever answers
    speaks no HTTP or cannot prove who they are.
    """

    def __init__(self, address: Address) -> None:
        self._url = address.url
        self._connection = address.connection()
        self._socket: socket.socket | None = None
        self._cut = False
        self._response: HTTPResponse | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is not None:
            self._response.close()
        self._connection.close()

    async def ask(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | Iterator[bytes] | None
    ) -> HTTPResponse:
        """Send the request, and wait for the head of the answer."""
        return await self._in_thread(lambda: self._ask(method, path, headers=headers, body=body))

    async def read(self) -> bytes:
        """The whole answer."""
        return await self._in_thread(self._answer.read)

    async def read_some(self, size: int) -> bytes:
        """What there is of the answer by now, at most so much; empty at its end."""
        return await self._in_thread(lambda: self._read_some(size))

    def _ask(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | Iterator[bytes] | None
    ) -> HTTPResponse:
        connection = self._connection
        connection.connect()
        self._socket = connection.sock
        if self._cut:  # nobody wants it any more: what was not asked is not done
            raise ConnectionAbortedError
        connection.sock.settimeout(ANSWER_WITHIN)
        # A service that refuses does not read to the end; what it says is waiting all the same.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body, dict(headers), encode_chunked=isinstance(body, Iterator))
        self._response = connection.getresponse()
        return self._response

    def _read_some(self, size: int) -> bytes:
        piece = self._answer.read1(size)
        if not piece and self._answer.length:
            raise IncompleteRead(piece, self._answer.length)
        return piece

    @property
    def _answer(self) -> HTTPResponse:
        if self._response is None:
            raise RuntimeError("nothing was asked yet")
        return self._response

    async def _in_thread(self, work: Callable[[], Value]) -> Value:
        try:
            return await asyncio.to_thread(work)
        except asyncio.CancelledError:
            self._cut = True
            if self._socket is not None:
                with contextlib.suppress(OSError):  # else the thread would wait on, and the process for it
                    self._socket.shutdown(socket.SHUT_RDWR)
            raise
        except ssl.SSLCertVerificationError as error:
            raise ConfigError(f"--url: {self._url} cannot prove who it is: {error.verify_message}") from error
        except TimeoutError as error:
            raise away(self._url, "it takes too long") from error
        except OSError as error:
            raise away(self._url, error.strerror or str(error) or type(error).__name__) from error
        except IncompleteRead as error:
            raise away(self._url, "the answer broke off") from error
        except HTTPException as error:
            raise stranger(self._url, "what answers speaks no HTTP") from error
