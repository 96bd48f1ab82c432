"""What the port `Transport` promises, kept by aiohttp and by httpx."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest

from redrive.clock import SystemClock
from redrive.core.errors import BadAnswer, RequestRejected, TransportFault
from redrive.gateway import Gateway, ModelConfig, Outside, Post, Transport
from redrive.gateway.aiohttp_transport import AiohttpTransport
from redrive.gateway.httpx_transport import SHARE, HttpxTransport
from tests.gateway.fault_server import DONE, EVENTS, PATIENCE, Act, FaultServer, flood, good, say, words, write
from tests.gateway.theatre import a_request

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture(params=[AiohttpTransport, HttpxTransport])
async def transport(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    opened: Transport = request.param()
    yield opened
    await opened.aclose()
    await opened.aclose()


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE):
        yield server


def a_post(url: str, **fields: Any) -> Post:
    body = b'{"messages": [{"role": "user", "content": "hi"}]}'
    given = Post(f"{url}/chat/completions", {"X-Own": "1"}, body, connect_timeout=5, max_answer_bytes=300_000)
    return given._replace(**fields)


async def test_a_reply_is_whole_whatever_its_status(transport: Transport, server: FaultServer) -> None:
    server.plan(say(), say(503, b"no", {"Retry-After": "3"}))
    first, second = await transport.post(a_post(server.url)), await transport.post(a_post(server.url))

    assert (first.status, first.body) == (200, good())
    assert (second.status, second.body, second.headers["retry-after"]) == (503, b"no", "3")
    headers = {name.lower(): value for name, value in server.visits[0].headers.items()}
    assert (headers["x-own"], headers["user-agent"], headers["content-type"]) == ("1", "redrive", "application/json")
    assert len({visit.connection for visit in server.visits}) == 1


async def test_no_redirect_is_followed(transport: Transport, server: FaultServer) -> None:
    server.rule = lambda _: say(302, b"", {"Location": "/elsewhere"})

    assert (await transport.post(a_post(server.url))).status == 302
    assert len(server.visits) == 1


async def test_a_body_that_is_packed_is_unpacked(transport: Transport, server: FaultServer) -> None:
    server.plan(say(body=gzip.compress(good()), headers={"Content-Encoding": "gzip"}))

    assert (await transport.post(a_post(server.url))).body == good()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (write(b"", then="reset"), TransportFault),
        (write(HEAD + b"Content-Length: 500\r\n\r\n{", then="reset"), TransportFault),
        (write(HEAD + b"Content-Length: 500\r\n\r\n{"), TransportFault),
        (write(b"HTTP/1.1 what\r\n\r\n"), TransportFault),
        (say(headers={"Content-Encoding": "gzip"}), BadAnswer),
        (flood(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"), BadAnswer),
    ],
    ids=["reset", "reset in the body", "short body", "no HTTP", "no gzip", "without end"],
)
async def test_a_fault_is_one_of_ours_and_its_connection_is_left(
    transport: Transport, server: FaultServer, fault: Act, kind: type[Exception]
) -> None:
    server.plan(fault)
    with pytest.raises((TransportFault, BadAnswer)) as raised:
        await transport.post(a_post(server.url))

    assert isinstance(raised.value, kind)
    assert raised.value.possibly_executed
    await transport.post(a_post(server.url))
    assert len({visit.connection for visit in server.visits}) == 2


async def test_what_was_not_sent_was_surely_not_executed(transport: Transport) -> None:
    with pytest.raises(TransportFault) as raised:
        await transport.post(a_post("http://127.0.0.1:1/v1"))

    assert not raised.value.possibly_executed


async def test_an_address_that_is_none_is_rejected(transport: Transport) -> None:
    with pytest.raises((RequestRejected, TransportFault)):
        await transport.post(a_post("http:"))


async def test_a_call_that_is_broken_off_is_seen_by_the_server(transport: Transport, server: FaultServer) -> None:
    server.plan(write(b"", then="hang"))
    call = asyncio.ensure_future(transport.post(a_post(server.url)))
    await server.arrived(1)
    call.cancel()
    await server.gone(1)

    assert (await transport.post(a_post(server.url))).status == 200


async def test_a_stream_comes_bit_by_bit(transport: Transport, server: FaultServer) -> None:
    said = words("one ") + words("two", "stop") + DONE
    server.plan(write(EVENTS + said))
    async with transport.stream(a_post(server.url)) as reply:
        assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
        assert b"".join([chunk async for chunk in reply.chunks]) == said


async def test_a_closed_transport_makes_no_call(transport: Transport, server: FaultServer) -> None:
    await transport.aclose()
    with pytest.raises(TransportFault):
        await transport.post(a_post(server.url))


async def test_many_calls_at_once_share_small_pools(server: FaultServer) -> None:
    transport = HttpxTransport()
    models = {"fast": ModelConfig(base_url=server.url, model_name="model-1", concurrency=4 * SHARE)}
    async with Gateway(models, policy=0, outside=Outside(transport=transport)) as gateway:
        futures = await gateway.submit_many([a_request(f"r{number}") for number in range(200)])
        assert {(await future).text for future in futures} == {"hello"}
    await transport.aclose()
