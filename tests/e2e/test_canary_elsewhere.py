"""The redrive protocol on the other brokers: a canary that stops, and one that comes to its end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.way_back_shop import broken, open_shop, works
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitServer

Server = KafkaServer | NatsServer | RabbitServer


@pytest.fixture(params=[KafkaServer, NatsServer, RabbitServer], ids=["kafka", "nats", "rabbitmq"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server: Server = request.param(tmp_path / "server")
    with server:
        yield server.url


async def test_a_canary_stops_with_the_handler_still_broken_and_ends_with_all_resolved_once_it_is_fixed(
    url: str, tmp_path: Path
) -> None:
    async with open_shop(tmp_path, url) as shop:
        await shop.die(20)
        shop.fault = broken
        stopped = await shop.begin(canary=(1, 5))
        async with shop.worker():
            assert await shop.carry_out(stopped) == "stopped after 1: same failure, 19 untouched"
        assert await shop.states() == {"open": 20}
        assert list(shop.runs.values()) == [1], "a canary has one attempt"

        shop.fault = works
        shop.runs.clear()
        fixed = await shop.begin(canary=(1, 5))
        async with shop.worker("v3"):
            verdict = await shop.carry_out(fixed)
            await shop.settled()

        assert verdict == "Sent 1, it succeeded on version v3; sent 5, then 14: 20 resolved, 0 unconfirmed"
        assert await shop.states() == {"resolved": 20}
        assert {order for order, _ in shop.runs} == {*range(20)}
        assert {*shop.runs.values()} == {1}, "each was run once"
