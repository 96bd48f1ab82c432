"""A provider on loopback that fails in every way that is asked of it."""

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from redrive.core.ports import Clock

PATIENCE = 60.0
"""How long a test waits for something that must happen, on a machine that has other things to do."""


@dataclass(slots=True)
class Visit:
    """One request that arrived."""

    number: int
    at: datetime
    path: str
    headers: Mapping[str, str]
    body: Any
    reader: asyncio.StreamReader = field(repr=False)
    writer: asyncio.StreamWriter = field(repr=False)
    connection: int = 0

    @property
    def said(self) -> str:
        """The text of the last message, by which tests know requests."""
        return str(self.body["messages"][-1]["content"])


Act = Callable[[Visit], Awaitable[None]]
Rule = Callable[[Visit], Act]


def good(text: str = "hello", tokens: int = 12) -> bytes:
    """The body of a good answer."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": tokens - tokens // 2, "completion_tokens": tokens // 2}
    return json.dumps({"id": "c1", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()


def http(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole response."""
    shown = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in shown.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}\r\n".encode() + body


def say(status: int = 200, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Act:
    """Answer so."""

    async def act(visit: Visit) -> None:
        default = good() if status == 200 else json.dumps({"error": {"message": "no"}}).encode()
        visit.writer.write(http(status, default if body is None else body, headers))
        await visit.writer.drain()

    return act


def refuse(status: int, code: str, headers: Mapping[str, str] | None = None) -> Act:
    """Answer with an error of this code."""
    return say(status, json.dumps({"error": {"message": "no", "type": code, "code": code}}).encode(), headers)


def write(raw: bytes, *, then: str = "close") -> Act:
    """Write these bytes, then close, reset, or hang until the client leaves."""

    async def act(visit: Visit) -> None:
        visit.writer.write(raw)
        await visit.writer.drain()
        if then == "hang":
            await visit.reader.read()
        elif then == "reset":
            reset(visit)
        else:
            visit.writer.close()

    return act


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def event(**fields: Any) -> bytes:
    """One event of a streamed answer."""
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def words(text: str, finish: str | None = None) -> bytes:
    """Some words of a streamed answer, in the OpenAI form."""
    return event(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish}])


DONE = b"data: [DONE]\n\n"


def dribble(raw: bytes) -> Act:
    """Write these bytes one by one, for ever, as fast as somebody takes them."""

    async def act(visit: Visit) -> None:
        visit.writer.write(raw)
        while not visit.reader.at_eof():
            visit.writer.write(b" ")
            await visit.writer.drain()
            await asyncio.sleep(0.005)

    return act


def flood(raw: bytes, chunk: bytes) -> Act:
    """Write these bytes, and then the chunk without end."""

    async def act(visit: Visit) -> None:
        visit.writer.write(raw)
        while not visit.writer.is_closing():
            visit.writer.write(chunk)
            await visit.writer.drain()

    return act


def reset(visit: Visit) -> None:
    """End the connection with a reset instead of a farewell."""
    plain = visit.writer.get_extra_info("socket")
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    visit.writer.transport.abort()


class FaultServer:
    """Answers each request by the next act of `script`, then by `rule`. Tells what arrived, and who left.

    `clock` stamps visits: with the gateway's manual clock they are in its time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0
        self.script: list[Act] = []
        self.rule: Rule = lambda _: say()
        self.visits: list[Visit] = []
        self.left = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """The base of its addresses."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def plan(self, *acts: Act) -> None:
        """What comes next, request by request."""
        self.script = [*acts]

    async def arrived(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        await self._until(lambda: len(self.visits) >= count)

    async def gone(self, count: int) -> None:
        """Wait until so many clients have left before their answer was whole."""
        await self._until(lambda: self.left >= count)

    async def _until(self, seen: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(seen)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        connection = self._connections
        try:
            while not writer.is_closing() and (visit := await self._read(reader, writer)) is not None:
                visit.connection = connection
                self.visits.append(visit)
                await self._tell()
                act = self.script.pop(0) if self.script else self.rule(visit)
                await self._answer(act, visit)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the end of a connection; asyncio would make noise about a task that was cancelled
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(ConnectionError):
                writer.close()

    async def _answer(self, act: Act, visit: Visit) -> None:
        """Do it; a client that leaves meanwhile is counted."""
        acting = asyncio.ensure_future(act(visit))
        try:
            while not acting.done():
                await asyncio.wait([acting], timeout=0.02)
                if visit.reader.at_eof() and not visit.writer.is_closing():
                    raise ConnectionResetError
            acting.result()
            if visit.reader.at_eof():
                raise ConnectionResetError
        except ConnectionError:
            self.left += 1
            await self._tell()
            raise
        finally:
            acting.cancel()
            await asyncio.gather(acting, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Visit | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = first.split(" ")[1]
        return Visit(len(self.visits) + 1, self._clock.now(), path, headers, json.loads(body), reader, writer)
