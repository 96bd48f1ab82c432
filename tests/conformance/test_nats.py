"""The NATS broker on a real server, whose time is made to pass by a listener (`tests/servers/nats_time.py`)."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from redrive.brokers.nats import NatsBroker
from redrive.testing.conformance import BrokerSuite, BrokerUnderTest
from tests.servers.nats import NatsServer
from tests.servers.nats_time import NatsTime


class TestNats(BrokerSuite):
    @pytest.fixture
    async def broker_under_test(
        self, nats_server: NatsServer, nats_in_time: NatsTime
    ) -> AsyncIterator[BrokerUnderTest]:
        opened: list[NatsBroker] = []

        async def reopen() -> NatsBroker:
            opened.append(NatsBroker(nats_server.url, clock=nats_in_time.clock))
            return opened[-1]

        yield BrokerUnderTest(
            broker=await reopen(),
            clock=nats_in_time.clock,
            elapse=nats_in_time.elapse,
            reopen=reopen,
            patience=timedelta(seconds=1),
        )
        for broker in opened:
            await broker.aclose()
