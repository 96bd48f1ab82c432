from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
import redis

from redrive.brokers.redis import RedisBroker
from redrive.clock import SystemClock


@pytest.fixture
def queue() -> str:
    """A queue that nobody else uses."""
    return f"orders-{uuid4().hex[:12]}"


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[str], RedisBroker]]:
    """Brokers at a URL, closed at the end."""
    opened: list[RedisBroker] = []

    def connected(url: str) -> RedisBroker:
        opened.append(RedisBroker(url, clock=SystemClock()))
        return opened[-1]

    yield connected
    for broker in opened:
        await broker.aclose()


@pytest.fixture
def broker(redis_url: str, connect: Callable[[str], RedisBroker]) -> RedisBroker:
    return connect(redis_url)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """A plain client, as somebody else would use it."""
    with redis.Redis.from_url(redis_url, protocol=2) as client:
        yield client


@pytest.fixture
def fields_in(client: redis.Redis) -> Callable[[str], list[list[bytes]]]:
    """The fields of every entry of a stream, names and values in turn, byte for byte."""

    def fields(stream: str) -> list[list[bytes]]:
        client.response_callbacks.clear()
        answer: Any = client.execute_command("XRANGE", stream, "-", "+")  # type: ignore[no-untyped-call]
        return [found for _, found in answer]

    return fields
