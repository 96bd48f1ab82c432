from datetime import timedelta

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.testing.clock import ManualClock
from redrive.testing.conformance import BrokerSuite, BrokerUnderTest


@pytest.fixture
def broker_under_test() -> BrokerUnderTest:
    clock = ManualClock()
    broker = MemoryBroker(clock=clock)

    async def elapse(delta: timedelta) -> None:
        clock.advance(delta)

    async def reopen() -> MemoryBroker:
        return broker

    return BrokerUnderTest(broker=broker, clock=clock, elapse=elapse, reopen=reopen)


class TestMemory(BrokerSuite):
    pass
