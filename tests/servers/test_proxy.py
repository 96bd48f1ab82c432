import asyncio
import gc
import socket
from collections.abc import Iterator
from threading import Event

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.servers.ports import free_port
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[FaultProxy]:
    redis_server.ask("DEL", "count")
    with FaultProxy(redis_server.port, seed=1) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[redis.Redis]:
    with redis.Redis(port=proxy.port, retry=Retry(NoBackoff(), 0)) as client:
        yield client


def test_a_proxy_forwards_what_it_gets(client: redis.Redis) -> None:
    body = bytes(range(256)) * 4096

    assert client.set("body", body)
    assert client.get("body") == body


def test_a_cut_ends_every_connection_and_new_ones_are_accepted(proxy: FaultProxy, client: redis.Redis) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        connection.sendall(b"PING\r\n")
        before = connection.recv(100)
        proxy.cut()

        assert before == b"+PONG\r\n"
        assert connection.recv(100) == b""
        assert client.ping()


def test_a_request_whose_answer_is_cut_has_reached_the_server(
    proxy: FaultProxy, client: redis.Redis, redis_server: RedisServer
) -> None:
    client.ping()
    proxy.cut_share = 1
    with pytest.raises(redis.ConnectionError):
        client.incr("count")

    assert redis_server.ask("GET", "count") == "1"
    assert proxy.answers_cut == 1


def test_a_share_of_the_answers_is_cut(proxy: FaultProxy, client: redis.Redis, redis_server: RedisServer) -> None:
    proxy.cut_share = 0.1
    failed = 0
    for _ in range(200):
        try:
            client.incr("count")
        except redis.ConnectionError:
            failed += 1

    assert 0 < proxy.answers_cut == failed < 200
    assert 200 - failed <= int(str(redis_server.ask("GET", "count"))) <= 200


def test_delayed_answers_arrive(proxy: FaultProxy, client: redis.Redis) -> None:
    proxy.delay = 0.01

    assert client.ping()


def test_a_server_that_is_down_is_a_connection_cut() -> None:
    with FaultProxy(free_port()) as proxy, socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        assert connection.recv(100) == b""


def test_a_connection_that_is_still_being_made_is_closed_when_the_proxy_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Event()

    async def never(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", never)
    with FaultProxy(free_port()) as proxy:
        connection = socket.create_connection(("127.0.0.1", proxy.port))
        begun.wait()

    with connection:
        assert connection.recv(100) == b""
    gc.collect()  # says what nobody has closed
