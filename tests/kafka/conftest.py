from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import pytest

from redrive.brokers.kafka import KafkaBroker
from redrive.clock import SystemClock


@pytest.fixture
def queue() -> str:
    """A queue that nobody else uses."""
    return f"orders-{uuid4().hex[:12]}"


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[str], KafkaBroker]]:
    """Brokers at a URL, closed at the end."""
    opened: list[KafkaBroker] = []

    def connected(url: str) -> KafkaBroker:
        opened.append(KafkaBroker(url, clock=SystemClock()))
        return opened[-1]

    yield connected
    for broker in opened:
        await broker.aclose()


@pytest.fixture
def broker(kafka_url: str, connect: Callable[[str], KafkaBroker]) -> KafkaBroker:
    return connect(kafka_url)
