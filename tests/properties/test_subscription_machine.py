"""Random moves on the subscription port, compared with a dict after each: on every broker."""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar
from uuid import uuid4

import pytest
from hypothesis import settings

from redrive.brokers.kafka import KafkaBroker
from redrive.brokers.memory import MemoryBroker
from redrive.brokers.nats import NatsBroker
from redrive.brokers.rabbitmq import RabbitBroker
from redrive.brokers.redis import RedisBroker
from redrive.brokers.sqlite import SqliteBroker
from redrive.core.ports import Broker, Clock
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.bench import GROUP
from tests.properties.machine import SubscriptionMachine
from tests.servers.frozen_time import FrozenClock
from tests.servers.jumping_time import JumpingClock, StandingClock
from tests.servers.nats_time import ListeningClock
from tests.servers.rabbitmq import RabbitServer
from tests.servers.redis import RedisServer

PATIENCE = 30  # seconds for a server to move what is due


class OnMemory(SubscriptionMachine):
    def open(self, clock: Clock) -> Broker:
        return MemoryBroker(clock=clock)


class OnSqlite(SubscriptionMachine):
    def open(self, clock: Clock) -> Broker:
        self.folder = TemporaryDirectory()
        return SqliteBroker(Path(self.folder.name) / "redrive.db", clock=clock)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class OnRedis(SubscriptionMachine):
    server: ClassVar[RedisServer]
    server_clock: ClassVar[FrozenClock]

    def the_clock(self) -> ManualClock:
        return self.server_clock

    def open(self, clock: Clock) -> Broker:
        self.server.flush()
        return RedisBroker(self.server.url, clock=clock)


class OnKafka(SubscriptionMachine):
    url: ClassVar[str]

    def the_clock(self) -> ManualClock:
        return ManualClock(datetime.now(UTC))

    def open(self, clock: Clock) -> Broker:
        return KafkaBroker(self.url, clock=clock)

    def the_queue(self) -> str:
        return f"orders-{uuid4().hex[:12]}"


class OnNats(SubscriptionMachine):
    url: ClassVar[str]
    listening: ListeningClock

    def the_clock(self) -> ManualClock:
        self.listening = ListeningClock(self.url, self.run)
        return self.listening

    def open(self, clock: Clock) -> Broker:
        return NatsBroker(self.url, clock=clock)

    def the_queue(self) -> str:
        return f"orders-{uuid4().hex[:12]}"

    def teardown(self) -> None:
        self.listening.close()
        super().teardown()


class OnRabbitMQ(SubscriptionMachine):
    """The server's time goes on while ours stands still, so that ours goes in minutes: no run takes so long."""

    unit = timedelta(minutes=1)
    url: ClassVar[str]
    server_clock: ClassVar[JumpingClock]

    def the_clock(self) -> ManualClock:
        return StandingClock(self.server_clock)

    def open(self, clock: Clock) -> Broker:
        return RabbitBroker(self.url, clock=clock)

    def the_queue(self) -> str:
        return f"orders-{uuid4().hex[:12]}"

    def catch_up(self) -> None:
        self.run(self._catch_up())

    async def _catch_up(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await self._is_all_there():  # noqa: ASYNC110 - the server moves what is due by itself
                await asyncio.sleep(0.01)

    async def _is_all_there(self) -> bool:
        """Whether all that is due has come to every group."""
        expected = self.model.counts(self.clock.now())
        depth = await self.broker.depth(self.queue, group=GROUP)
        other = await self.broker.depth(self.queue, group="audit")
        has_come = {name: getattr(depth, name) for name in expected} == expected
        return has_come and other.waiting + other.scheduled == len(self.model.records)


@pytest.fixture(scope="module")
def rabbitmq_for_the_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server of its own: what is in hand for long is not taken away from workers that stand still."""
    folder = tmp_path_factory.mktemp("rabbitmq")
    OnRabbitMQ.server_clock = JumpingClock(folder)
    for_ever = {"consumer_timeout": f"{timedelta(days=365) // timedelta(milliseconds=1)}"}
    with RabbitServer(folder / "server", for_ever, clock=OnRabbitMQ.server_clock) as server:
        OnRabbitMQ.url = server.url
        yield


@pytest.fixture
def nats_for_the_machine(nats_url: str) -> None:
    OnNats.url = nats_url


@pytest.fixture
def kafka_for_the_machine(kafka_url: str) -> None:
    OnKafka.url = kafka_url


@pytest.fixture
def redis_for_the_machine(frozen_redis: tuple[RedisServer, FrozenClock]) -> None:
    OnRedis.server, OnRedis.server_clock = frozen_redis


TestOnMemory = OnMemory.TestCase
TestOnMemory.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)

TestOnSqlite = OnSqlite.TestCase
TestOnSqlite.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

TestOnRedis = pytest.mark.usefixtures("redis_for_the_machine")(OnRedis.TestCase)
TestOnRedis.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)

TestOnKafka = pytest.mark.usefixtures("kafka_for_the_machine")(OnKafka.TestCase)
TestOnKafka.settings = settings(max_examples=8, stateful_step_count=25, deadline=None)

TestOnNats = pytest.mark.usefixtures("nats_for_the_machine")(OnNats.TestCase)
TestOnNats.settings = settings(max_examples=8, stateful_step_count=25, deadline=None)

# It takes a minute or two, with a server of its own. How often it was run is said in docs/adapters/rabbitmq.md.
TestOnRabbitMQ = pytest.mark.skipif("REDRIVE_CRASH_RABBITMQ" not in os.environ, reason="make crash-rabbitmq runs it")(
    pytest.mark.usefixtures("rabbitmq_for_the_machine")(OnRabbitMQ.TestCase)
)
TestOnRabbitMQ.settings = settings(max_examples=8, stateful_step_count=25, deadline=None)
