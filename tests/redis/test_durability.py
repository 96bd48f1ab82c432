"""Publishing returns when as many replicas as asked for have the message."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.core.errors import BrokerUnavailable, DeadLetterError
from redrive.core.message import Message
from redrive.core.redrive import SendBack
from tests.redis.letters import letter
from tests.servers.redis import RedisServer
from tests.servers.server import until


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
    """A server and its replica."""
    with (
        RedisServer(tmp_path / "primary") as primary,
        RedisServer(tmp_path / "replica", {"replicaof": f"127.0.0.1 {primary.port}"}) as replica,
    ):
        until(lambda: replica.info("replication")["master_link_status"] == "up", what="the replica in step")
        yield primary, replica


async def test_what_was_confirmed_is_on_the_replica(
    pair: tuple[RedisServer, RedisServer], connect: Callable[[str], RedisBroker]
) -> None:
    primary, replica = pair
    await connect(f"{primary.url}?durability=wait:1").publish("orders", [Message("", "orders", b"1")])

    assert replica.ask("XLEN", "orders") == 1


async def test_what_no_replica_has_is_written_but_not_confirmed(
    pair: tuple[RedisServer, RedisServer], connect: Callable[[str], RedisBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, replica = pair
    broker = connect(f"{primary.url}?durability=wait:1")
    item = SendBack("a1", 1, "orders", b"1", group="shop")
    replica.pause()
    monkeypatch.setattr("redrive.brokers.redis.transaction.CONFIRM_WITHIN", 100)
    try:
        with pytest.raises(BrokerUnavailable, match="written, but confirmed by 0 of 1 replicas"):
            await broker.publish("orders", [Message("", "orders", b"1")])
        with pytest.raises(BrokerUnavailable, match="written, but confirmed by 0 of 1 replicas"):
            await broker.send_back([item])
        with pytest.raises(DeadLetterError, match="written, but confirmed by 0 of 1 replicas"):
            await broker.dead_letters("orders").send(letter("orders"))
    finally:
        replica.resume()
        monkeypatch.undo()
    (sent,) = await broker.send_back([item])
    await broker.dead_letters("orders").send(letter("orders"))

    assert sent.startswith("back-")
    assert (await broker.depth("orders", group="shop")).waiting == 2
    assert await broker.dead_letters("orders").length() == 1
