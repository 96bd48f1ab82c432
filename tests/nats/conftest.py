from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import nats
import pytest
from nats.aio.client import Client

from redrive.brokers.nats import NatsBroker
from redrive.clock import SystemClock


@pytest.fixture
def queue() -> str:
    """A queue that nobody else uses."""
    return f"orders-{uuid4().hex[:12]}"


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[str], NatsBroker]]:
    """Brokers at a URL, closed at the end."""
    opened: list[NatsBroker] = []

    def connected(url: str) -> NatsBroker:
        opened.append(NatsBroker(url, clock=SystemClock()))
        return opened[-1]

    yield connected
    for broker in opened:
        await broker.aclose()


@pytest.fixture
async def broker(nats_url: str, connect: Callable[[str], NatsBroker]) -> NatsBroker:
    return connect(nats_url)


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    """A plain client, as somebody else would use it."""
    async with await nats.connect(nats_url) as found:
        yield found
