from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.brokers.sqlite import SqliteBroker
from redrive.testing.clock import ManualClock
from redrive.testing.conformance.bench import Bench, BrokerUnderTest


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "redrive.db"


@pytest.fixture
async def reopen(file: Path, clock: ManualClock) -> AsyncIterator[Callable[[], SqliteBroker]]:
    """Brokers on the same file, as other processes would have them; closed at the end."""
    opened: list[SqliteBroker] = []

    def another() -> SqliteBroker:
        opened.append(SqliteBroker(file, clock=clock, reserve=0))
        return opened[-1]

    yield another
    for broker in opened:
        await broker.aclose()


@pytest.fixture
def broker(reopen: Callable[[], SqliteBroker]) -> SqliteBroker:
    return reopen()


@pytest.fixture
def bench(broker: SqliteBroker, reopen: Callable[[], SqliteBroker], clock: ManualClock) -> Bench:
    async def elapse(delta: timedelta) -> None:
        clock.advance(delta)

    async def other() -> SqliteBroker:
        return reopen()

    return Bench(BrokerUnderTest(broker=broker, clock=clock, elapse=elapse, reopen=other))
