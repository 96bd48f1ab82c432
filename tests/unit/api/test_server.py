import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from redrive.cli.rooms import furnish
from redrive.config import ServiceSettings
from redrive.core.access import Role
from redrive.core.errors import ConfigError
from redrive.door import server, slow_clients
from redrive.door.entrance import Entrance
from redrive.door.server import is_loopback, listen, port_of, serving
from redrive.service import Service
from redrive.triage import access
from tests.unit.triage.bench import Bench

CUT = 0.3
HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_LOOK", 0.02)
    for name in ("HEAD_WITHIN", "BODY_GRACE", "READ_WITHIN"):
        monkeypatch.setattr(slow_clients, name, CUT)


@asynccontextmanager
async def served(app: Entrance | None = None) -> AsyncIterator[int]:
    bench = Bench()
    service = Service(store=bench.store, brokers=bench.brokers, clock=bench.clock)
    sockets = listen("127.0.0.1", 0)
    async with serving(app or Entrance(service, furnish, loopback=True), sockets):
        yield port_of(sockets)


class Client:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, words: bytes) -> None:
        self.writer.write(words)
        await self.writer.drain()

    async def is_cut(self) -> bool:
        """Wait for the end of the connection."""
        try:
            async with asyncio.timeout(30):
                return await self.reader.read() == b""
        except ConnectionResetError:
            return True

    async def drip(self, words: bytes) -> bool:
        """Say so, a byte at a time, for as long as the other side listens."""
        try:
            for byte in words:
                await self.say(bytes([byte]))
                await asyncio.sleep(CUT / 10)
        except ConnectionError:
            return True
        return await self.is_cut()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def test_an_answer_tells_nothing_of_the_server() -> None:
    async with served() as port, connected(port) as client:
        await client.say(HEAD + b"Connection: close\r\n\r\n")
        answer = await client.reader.read()

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"uvicorn" not in answer.lower()
    assert b"\r\nserver:" not in answer.lower()


async def test_there_are_no_websockets() -> None:
    upgrade = (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n"
    )
    async with served() as port, connected(port) as client:
        await client.say(HEAD + upgrade)

        assert (await client.reader.readline()).split()[1] == b"200"  # an answer like any other


async def test_who_says_to_be_somebody_else_is_not_believed() -> None:
    """A proxy's headers can be written by anybody: neither the limit nor the loopback check looks at them."""
    bench = Bench()
    settings = ServiceSettings(rate_limit=1)
    service = Service(store=bench.store, brokers=bench.brokers, clock=bench.clock, settings=settings)
    async with served(Entrance(service, furnish, loopback=True)) as port:
        statuses = []
        for number in range(4):
            async with connected(port) as client:
                spoofed = b"X-Forwarded-For: 10.0.0.%d\r\nForwarded: for=10.0.0.%d\r\n\r\n" % (number, number)
                await client.say(HEAD + spoofed)
                statuses.append((await client.reader.readline()).split()[1])

    assert statuses == [b"200", b"200", b"429", b"429"]


async def test_a_client_that_says_nothing_is_cut() -> None:
    async with served() as port, connected(port) as client:
        assert await client.is_cut()


async def test_a_client_that_drips_its_headers_is_cut() -> None:
    async with served() as port, connected(port) as client:
        assert await client.drip(HEAD + b"X-Slow: " + b"a" * 60)


async def test_a_client_that_drips_its_second_request_is_cut() -> None:
    async with served() as port, connected(port) as client:
        await client.say(HEAD + b"\r\n")
        await client.reader.readuntil(b'{"status":"ok"}')

        assert await client.drip(HEAD + b"X-Slow: " + b"a" * 60)


async def test_a_client_that_drips_its_body_is_cut() -> None:
    async with served() as port, connected(port) as client:
        await client.say(
            b"POST /api/v1/redrives HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer rdt_none\r\nContent-Length: 10000\r\n\r\n"
        )
        cut = await client.drip(b"a" * 60)

    assert cut


class Endless(Entrance):
    """Answers for ever, as fast as it is read."""

    def __init__(self) -> None:
        self.sent = 0

    def close(self) -> None:
        pass

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            self.sent += 1
            await asyncio.sleep(0)
            if self.sent > 100_000:  # whoever is cut is not sent to any more
                return


async def test_a_client_that_does_not_read_its_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = asyncio.Event()
    ends = slow_clients.WatchedProtocol.connection_lost

    def connection_lost(self: slow_clients.WatchedProtocol, why: Exception | None) -> None:
        ends(self, why)
        cut.set()

    monkeypatch.setattr(slow_clients.WatchedProtocol, "connection_lost", connection_lost)
    async with served(Endless()) as port:
        with socket.create_connection(("127.0.0.1", port)) as silent:
            silent.sendall(HEAD + b"\r\n")
            async with asyncio.timeout(30):
                await cut.wait()

    assert cut.is_set()


async def test_a_client_that_is_fast_enough_is_served_however_long_it_stays() -> None:
    async with served() as port, connected(port) as client:
        for _ in range(5):
            await client.say(HEAD)
            await asyncio.sleep(CUT / 3)
            await client.say(b"\r\n")
            assert b" 200 OK" in await client.reader.readuntil(b'{"status":"ok"}')


class Hanging(Endless):
    """Answers nothing but whether it lives."""

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        if scope["path"] != "/healthz":
            await receive()
            self.sent += 1
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def test_a_service_that_is_full_of_requests_that_hang_is_still_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that is refused would restart it, and a store that hangs would hang after that too."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    hanging, stats = Hanging(), HEAD.replace(b"healthz", b"api/v1/dlq/stats") + b"\r\n"
    async with served(hanging) as port, AsyncExitStack() as stack:
        for _ in range(3):
            client = await stack.enter_async_context(connected(port))
            await client.say(stats)
        while hanging.sent < 2:  # noqa: ASYNC110 - the server's tasks bring it about
            await asyncio.sleep(0.01)
        statuses = []
        for words in (HEAD + b"\r\n", stats):
            async with connected(port) as client:
                await client.say(words)
                statuses.append((await client.reader.readline()).split()[1])

    assert statuses == [b"200", b"503"]


async def test_streams_end_when_the_server_does() -> None:
    bench = Bench()
    entrance = Entrance(Service(store=bench.store, brokers=bench.brokers, clock=bench.clock), furnish, loopback=True)
    async with entrance.watched(), served(entrance) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await reader.readuntil(b"event: ready")

    assert (await reader.read()).endswith(b"0\r\n\r\n"), "cut, not ended"
    writer.close()


async def test_a_port_that_is_taken_and_a_host_that_is_none_are_mistakes() -> None:
    (first,) = listen("127.0.0.1", 0)
    with first:
        with pytest.raises(ConfigError, match=r"--port: cannot listen on 127\.0\.0\.1 port"):
            listen("127.0.0.1", port_of([first]))
        with pytest.raises(ConfigError, match="--host: expected"):
            listen("no.such.host.invalid", 0)


def test_every_address_of_a_name_is_listened_on_at_one_port() -> None:
    sockets = listen("localhost", 0)
    try:
        assert len({sock.getsockname()[1] for sock in sockets}) == 1
        assert is_loopback(sockets)
    finally:
        for sock in sockets:
            sock.close()


# ------------------------------------------------------------------------------------------------ the entrance


async def test_the_door_is_open_only_on_loopback_and_only_before_the_first_token() -> None:
    bench = Bench()
    service = Service(store=bench.store, brokers=bench.brokers, clock=bench.clock)
    inside, outside = Entrance(service, furnish, loopback=True), Entrance(service, furnish, loopback=False)

    async with inside.watched(), outside.watched():
        assert (inside.needs_token, outside.needs_token) == (False, True)

        await access.issue(bench.desk, "kim", role=Role.VIEWER)
        await _noticed(bench, inside)
        assert outside.needs_token


async def test_a_last_token_that_is_revoked_or_expires_does_not_open_the_door() -> None:
    bench = Bench()
    revoked = await access.issue(bench.desk, "kim", role=Role.ADMIN)
    await access.revoke(bench.desk, revoked.token.token_id)
    await access.issue(bench.desk, "kim", role=Role.ADMIN, expires_in="1h")
    bench.clock.advance("2h")
    entrance = Entrance(Service(store=bench.store, brokers=bench.brokers, clock=bench.clock), furnish, loopback=True)

    async with entrance.watched():
        assert entrance.needs_token


async def test_who_listens_without_a_token_is_sent_away_when_the_door_is_closed() -> None:
    bench = Bench()
    entrance = Entrance(Service(store=bench.store, brokers=bench.brokers, clock=bench.clock), furnish, loopback=True)
    async with entrance.watched(), served(entrance) as port, connected(port) as client:
        await client.say(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await client.reader.readuntil(b"event: ready")
        await access.issue(bench.desk, "kim", role=Role.VIEWER)
        await _noticed(bench, entrance)

        async with asyncio.timeout(30):
            rest = await client.reader.readuntil(b"\r\n0\r\n\r\n")

    assert b"event: letter" not in rest


async def _noticed(bench: Bench, entrance: Entrance) -> None:
    """Return when it has noticed that there is a token."""
    while not entrance.needs_token:
        bench.clock.advance("1s")
        await asyncio.sleep(0)


async def test_while_nobody_knows_whether_there_is_a_token_strangers_are_told_to_try_again() -> None:
    bench = Bench()
    entrance = Entrance(Service(store=bench.store, brokers={}, clock=bench.clock), furnish, loopback=True)
    async with served(entrance) as port:
        before = [await _status(port, path) for path in ("/healthz", "/api/v1/letters", "/letters")]
        async with entrance.watched():
            after = [await _status(port, path) for path in ("/healthz", "/api/v1/letters", "/letters")]

    assert before == [b"200", b"503", b"503"]
    assert after == [b"200", b"200", b"200"]


async def _status(port: int, path: str) -> bytes:
    async with connected(port) as client:
        await client.say(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        return (await client.reader.readline()).split()[1]
