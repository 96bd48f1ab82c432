"""The primary is whichever the sentinel names."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.core.errors import BrokerUnavailable
from redrive.core.message import Message
from redrive.core.ports import Options
from tests.servers.redis_sentinel import WatchedRedis
from tests.servers.server import until


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[WatchedRedis]:
    with WatchedRedis(tmp_path) as watched:
        yield watched


async def test_after_a_failover_confirmed_messages_are_there_and_new_ones_arrive(
    watched: WatchedRedis, connect: Callable[[str], RedisBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = watched.servers
    broker = connect(f"{watched.url}?durability=wait:1")
    (before,) = await broker.publish("orders", [Message("", "orders", b"1")])
    first.kill()
    monkeypatch.setattr("redrive.brokers.redis.transaction.CONFIRM_WITHIN", 100)
    with pytest.raises(BrokerUnavailable):
        await broker.publish("orders", [Message("", "orders", b"2")])
    watched.wait_for_promotion(second)
    until(lambda: f":{second.port}," in watched.sentinel.info("sentinel")["master0"], what="the failover ended")
    with pytest.raises(BrokerUnavailable, match="written, but confirmed by 0 of 1"):
        await broker.publish("orders", [Message("", "orders", b"3")])
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    taken = await worker.fetch(10, wait=timedelta(seconds=5))

    assert [(delivery.message.body, delivery.message.id == before) for delivery in taken] == [
        (b"1", True),
        (b"3", False),
    ]


async def test_the_doctor_warns_where_a_failover_loses_what_was_not_waited_for(
    watched: WatchedRedis, connect: Callable[[str], RedisBroker]
) -> None:
    found = {finding.check: finding for finding in await connect(watched.url).diagnose()}

    assert (found["replicas"].level, found["replicas"].advice) == ("warn", "add durability=wait:1 to the URL")
    assert (found["cut off"].level, found["cut off"].advice) == ("warn", "CONFIG SET min-replicas-to-write 1")


async def test_a_sentinel_that_knows_no_such_primary_is_told_in_one_line(
    watched: WatchedRedis, connect: Callable[[str], RedisBroker]
) -> None:
    with pytest.raises(BrokerUnavailable, match=r"^redis: ") as caught:
        await connect(watched.url.replace("/main", "/other")).publish("orders", [Message("", "orders", b"1")])

    assert len(str(caught.value).splitlines()) == 1
