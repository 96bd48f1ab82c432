"""The RabbitMQ broker on a real one, whose time jumps."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from redrive.brokers.rabbitmq import RabbitBroker
from redrive.testing.conformance import BrokerSuite, BrokerUnderTest
from tests.servers.jumping_time import JumpingClock
from tests.servers.rabbitmq import RabbitServer


class TestRabbitMQ(BrokerSuite):
    @pytest.fixture
    async def broker_under_test(
        self, jumping_rabbitmq: tuple[RabbitServer, JumpingClock]
    ) -> AsyncIterator[BrokerUnderTest]:
        server, clock = jumping_rabbitmq
        opened: list[RabbitBroker] = []

        async def reopen() -> RabbitBroker:
            opened.append(RabbitBroker(server.url, clock=clock))
            return opened[-1]

        async def elapse(delta: timedelta) -> None:
            """A process that lives keeps house at its next heartbeat, wherever the one who looks is."""
            clock.advance(delta)
            await asyncio.gather(*(broker.keep_house() for broker in opened))

        yield BrokerUnderTest(
            broker=await reopen(), clock=clock, elapse=elapse, reopen=reopen, patience=timedelta(seconds=10)
        )
        await asyncio.gather(*(broker.aclose() for broker in opened))
