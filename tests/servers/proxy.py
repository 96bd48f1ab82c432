"""A bad network between clients and a server."""

import asyncio
import random
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Self

from tests.servers.ports import free_port

CHUNK = 65_536

Ends = tuple[asyncio.StreamWriter, asyncio.StreamWriter]


class FaultProxy:
    """Forwards connections to a server, and does to them what networks do.

    Of the answers, the share `cut_share` never arrives: the request has reached the server, the answer is dropped
    and its connection is cut; `answers_cut` counts them. All others arrive after `delay` seconds. Both may be changed
    at any time. Runs in a thread of its own, so that a program needs no event loop to use it.
    """

    def __init__(self, port: int, *, seed: int = 0) -> None:
        self.port = free_port()
        self.cut_share = 0.0
        self.delay = 0.0
        self.answers_cut = 0
        self._server_port = port
        self._random = random.Random(seed)
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = Thread(target=lambda: asyncio.run(self._serve()), name="fault proxy", daemon=True)
        self._listening = Event()
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event

    def cut(self) -> None:
        """Cut every connection. New ones are accepted."""
        asyncio.run_coroutine_threadsafe(self._abort(), self._loop).result()

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self._listening.set()
        await self._over.wait()
        server.close()
        await self._abort()

    async def _abort(self) -> None:
        """Cut every connection, those that are still being made too, and wait until nothing of it is left."""
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        connection = self._loop.create_task(self._connect(client, to_client))
        self._connections.add(connection)
        connection.add_done_callback(lambda done: self._end(done, to_client))

    def _end(self, connection: asyncio.Task[None], to_client: asyncio.StreamWriter) -> None:
        self._connections.remove(connection)
        _cut(to_client)

    async def _connect(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
        except OSError:
            return
        ends = (to_client, to_server)
        try:
            await asyncio.gather(
                self._forward_requests(client, to_server, ends), self._forward_answers(server, to_client, ends)
            )
        finally:
            _cut(*ends)

    async def _forward_requests(
        self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter, ends: Ends
    ) -> None:
        with suppress(OSError):
            while request := await client.read(CHUNK):
                to_server.write(request)
                await to_server.drain()
        _cut(*ends)

    async def _forward_answers(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter, ends: Ends) -> None:
        with suppress(OSError):
            while answer := await server.read(CHUNK):
                await asyncio.sleep(self.delay)
                if self._random.random() < self.cut_share:
                    self.answers_cut += 1
                    break
                to_client.write(answer)
                await to_client.drain()
        _cut(*ends)


def _cut(*ends: asyncio.StreamWriter) -> None:
    for end in ends:
        end.transport.abort()
