from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.brokers.sqlite import SqliteBroker
from redrive.testing.clock import ManualClock
from redrive.testing.conformance import BrokerSuite, BrokerUnderTest


@pytest.fixture
async def broker_under_test(tmp_path: Path) -> AsyncIterator[BrokerUnderTest]:
    clock = ManualClock()
    opened: list[SqliteBroker] = []

    async def elapse(delta: timedelta) -> None:
        clock.advance(delta)

    async def reopen() -> SqliteBroker:
        opened.append(SqliteBroker(tmp_path / "redrive.db", clock=clock))
        return opened[-1]

    yield BrokerUnderTest(broker=await reopen(), clock=clock, elapse=elapse, reopen=reopen)
    for broker in opened:
        await broker.aclose()


class TestSqlite(BrokerSuite):
    pass
