"""The ways to a server: with TLS, and through a socket of the machine."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater, Settlement
from redrive.core.ports import Options
from tests.redis.letters import letter
from tests.servers.certificate import Certificate
from tests.servers.redis import RedisServer

WAIT = timedelta(seconds=5)
SOON = timedelta(milliseconds=1)


@pytest.fixture(params=["rediss", "unix"])
def url(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server is that has no other way in."""
    if request.param == "rediss":
        with RedisServer(tmp_path / "redis", certificate=Certificate.make(tmp_path)) as server:
            yield server.url
    else:
        socket = tmp_path_factory.mktemp("s") / "r"  # such a path has at most some hundred bytes
        with RedisServer(tmp_path / "redis", {"unixsocket": f"{socket}"}):
            yield f"unix://{socket}"


async def test_a_message_is_published_fails_dies_and_comes_back(
    url: str, connect: Callable[[str], RedisBroker]
) -> None:
    broker = connect(url)
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    await broker.publish("orders", [Message("", "orders", b"\xff\x00")])
    (first,) = await worker.fetch(1, wait=WAIT)
    await worker.settle([Settlement(first, RetryLater(SOON))])
    (second,) = await worker.fetch(1, wait=WAIT)
    dead = letter("orders", payload=second.message.body)
    await worker.settle([Settlement(second, GiveUp("no"), letter=dead)])
    (entry,) = await broker.dead_letters("orders").peek()
    await broker.dead_letters("orders").redrive(entry.entry_id)
    (back,) = await worker.fetch(1, wait=WAIT)
    await worker.settle([Settlement(back)])
    depth = await broker.depth("orders", group="shop")

    assert (second.failures, back.letter_id) == (1, dead.letter_id)
    assert {one.message.body for one in (first, second, back)} == {b"\xff\x00"}
    assert (depth.waiting, depth.in_flight, depth.scheduled, depth.dead) == (0, 0, 0, 0)
