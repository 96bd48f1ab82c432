from collections.abc import AsyncIterator, Sequence

import aiormq
import pytest

from redrive import KafkaDeadLetterQueue
from redrive.brokers.kafka import KafkaBroker
from redrive.brokers.memory import MemoryBroker
from redrive.brokers.nats import NatsBroker
from redrive.brokers.rabbitmq import RabbitBroker
from redrive.brokers.rabbitmq.names import once_of
from redrive.brokers.redis import RedisBroker
from redrive.clock import SystemClock
from redrive.core.letter import DeadLetter
from redrive.testing.clock import ManualClock
from redrive.testing.conformance import DeadLetterQueueSuite, DeadLetterQueueUnderTest
from redrive.testing.queues import NullDeadLetterQueue, RecordingDeadLetterQueue
from redrive.worker.dead_letter_queues import BrokerDeadLetterQueue
from tests.servers.frozen_time import FrozenClock
from tests.servers.jumping_time import JumpingClock
from tests.servers.nats_time import NatsTime
from tests.servers.rabbitmq import RabbitServer
from tests.servers.redis import RedisServer


class TestNull(DeadLetterQueueSuite):
    @pytest.fixture
    def dead_letter_queue_under_test(self) -> DeadLetterQueueUnderTest:
        return DeadLetterQueueUnderTest(queue=NullDeadLetterQueue(), written=None)


class TestRecording(DeadLetterQueueSuite):
    @pytest.fixture
    def dead_letter_queue_under_test(self) -> DeadLetterQueueUnderTest:
        queue = RecordingDeadLetterQueue()

        async def written() -> Sequence[DeadLetter]:
            return queue.events

        return DeadLetterQueueUnderTest(queue=queue, written=written)


class TestOnABroker(DeadLetterQueueSuite):
    @pytest.fixture
    def dead_letter_queue_under_test(self) -> DeadLetterQueueUnderTest:
        broker = MemoryBroker(clock=ManualClock())

        async def written() -> Sequence[DeadLetter]:
            return [entry.letter for entry in await broker.dead_letters("orders").peek()]

        return DeadLetterQueueUnderTest(queue=BrokerDeadLetterQueue(broker), written=written)


class TestOnRedis(DeadLetterQueueSuite):
    @pytest.fixture
    async def dead_letter_queue_under_test(
        self, frozen_redis: tuple[RedisServer, FrozenClock]
    ) -> AsyncIterator[DeadLetterQueueUnderTest]:
        server, clock = frozen_redis
        server.flush()
        broker = RedisBroker(server.url, clock=clock)

        async def written() -> Sequence[DeadLetter]:
            return [entry.letter for entry in await broker.dead_letters("orders").peek()]

        yield DeadLetterQueueUnderTest(queue=BrokerDeadLetterQueue(broker), written=written)
        await broker.aclose()


class TestOnKafka(DeadLetterQueueSuite):
    @pytest.fixture
    async def dead_letter_queue_under_test(self, kafka_url: str) -> AsyncIterator[DeadLetterQueueUnderTest]:
        queue, look = KafkaDeadLetterQueue(kafka_url), KafkaBroker(kafka_url, clock=SystemClock())
        letters = look.dead_letters("orders")
        for entry in await letters.peek(100):
            await letters.remove(entry.entry_id)

        async def written() -> Sequence[DeadLetter]:
            return [entry.letter for entry in await letters.peek()]

        yield DeadLetterQueueUnderTest(queue=queue, written=written)
        await queue.aclose()
        await look.aclose()


class TestOnNats(DeadLetterQueueSuite):
    @pytest.fixture
    async def dead_letter_queue_under_test(
        self, nats_url: str, nats_in_time: NatsTime
    ) -> AsyncIterator[DeadLetterQueueUnderTest]:
        broker, look = (NatsBroker(nats_url, clock=nats_in_time.clock) for _ in range(2))

        async def written() -> Sequence[DeadLetter]:
            return [entry.letter for entry in await look.dead_letters("orders").peek()]

        yield DeadLetterQueueUnderTest(queue=BrokerDeadLetterQueue(broker), written=written)
        await broker.aclose()
        await look.aclose()


class TestOnRabbitMQ(DeadLetterQueueSuite):
    @pytest.fixture
    async def dead_letter_queue_under_test(
        self, jumping_rabbitmq: tuple[RabbitServer, JumpingClock]
    ) -> AsyncIterator[DeadLetterQueueUnderTest]:
        server, clock = jumping_rabbitmq
        async with await aiormq.connect(server.url) as connection:
            channel = await connection.channel()
            for name in ("orders.dlq", once_of("orders.dlq")):
                await channel.queue_delete(name)
        broker, look = (RabbitBroker(server.url, clock=clock) for _ in range(2))

        async def written() -> Sequence[DeadLetter]:
            return [entry.letter for entry in await look.dead_letters("orders").peek()]

        yield DeadLetterQueueUnderTest(queue=BrokerDeadLetterQueue(broker), written=written)
        await broker.aclose()
        await look.aclose()
