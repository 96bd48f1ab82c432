"""One RabbitMQ for all of these tests; each has a broker and a queue of its own."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import aiormq
import pytest
from aiormq.abc import AbstractChannel
from pamqp.commands import Basic

from redrive.brokers.rabbitmq import RabbitBroker
from redrive.core.delivery import Delivery
from redrive.core.event import Event
from redrive.core.message import Message
from redrive.core.ports import Options, Subscription
from redrive.testing.conformance.bench import Bench, BrokerUnderTest
from tests.servers.jumping_time import JumpingClock
from tests.servers.rabbitmq import RabbitServer

PATIENCE = timedelta(seconds=20)


@dataclass(slots=True)
class Scene:
    """A broker, a queue of its own, and a channel of somebody else."""

    broker: RabbitBroker
    clock: JumpingClock
    url: str
    channel: AbstractChannel
    events: list[Event] = field(default_factory=list)
    queue: str = field(default_factory=lambda: f"orders-{uuid4().hex[:12]}")

    async def worker(self, **options: object) -> Subscription:
        given = Options(owner=uuid4().hex, **options)  # type: ignore[arg-type]
        return await self.broker.subscribe(self.queue, group="shop", options=given)

    async def publish(self, *bodies: bytes) -> None:
        await self.broker.publish(self.queue, [Message("", self.queue, body) for body in bodies])

    async def foreign(self, body: bytes, *, queue: str | None = None, **properties: object) -> None:
        """Publish as anybody could."""
        await self.channel.basic_publish(
            body,
            routing_key=queue or self.queue,
            properties=Basic.Properties(delivery_mode=2, **properties),  # type: ignore[arg-type]
        )

    async def take(self, worker: Subscription) -> Delivery:
        (found,) = await worker.fetch(1, wait=PATIENCE)
        return found


@pytest.fixture
async def scene(jumping_rabbitmq: tuple[RabbitServer, JumpingClock]) -> AsyncIterator[Scene]:
    server, clock = jumping_rabbitmq
    events: list[Event] = []
    broker = RabbitBroker(server.url, clock=clock, sink=_Sink(events))
    connection = await aiormq.connect(server.url)
    yield Scene(broker, clock, server.url, await connection.channel(), events)
    await connection.close()
    await broker.aclose()


@pytest.fixture
def bench(scene: Scene) -> Bench:
    """The verbs of the suite, on the queue of the scene."""
    never: Any = None
    under_test = BrokerUnderTest(broker=scene.broker, clock=scene.clock, elapse=never, reopen=never)
    return Bench(under_test, queue=scene.queue)


class _Sink:
    def __init__(self, events: list[Event]) -> None:
        self._events = events

    def emit(self, event: Event) -> None:
        self._events.append(event)
