"""Attempts counted in Redis, for messages of other brokers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from redrive import wiring
from redrive.core.errors import BrokerUnavailable, ConfigError
from redrive.core.ports import AttemptCounter


@pytest.fixture
def prefix() -> str:
    return f"shop-{uuid4().hex[:8]}"


@pytest.fixture
async def counter(redis_url: str, prefix: str) -> AsyncIterator[AttemptCounter]:
    counter = wiring.attempt_counter(redis_url, prefix=prefix)
    yield counter
    await counter.aclose()


async def test_each_attempt_is_counted(counter: AttemptCounter) -> None:
    assert [await counter.get("m1"), await counter.add("m1"), await counter.add("m1"), await counter.get("m1")] == [
        *(0, 1, 2, 2)
    ]
    assert await counter.get("m2") == 0


async def test_a_count_that_was_forgotten_begins_again(counter: AttemptCounter) -> None:
    await counter.add("m1")
    await counter.forget("m1")
    await counter.forget("m1")

    assert (await counter.get("m1"), await counter.add("m1")) == (0, 1)


async def test_many_at_once_count_each(counter: AttemptCounter) -> None:
    counts = await asyncio.gather(*(counter.add("m1") for _ in range(20)))

    assert sorted(counts) == [*range(1, 21)]


async def test_the_key_is_one_that_others_can_read_and_ends_after_seven_days(
    counter: AttemptCounter, client: Any, prefix: str
) -> None:
    await counter.add("order:7 {x}")
    key = f"{prefix}:retry_count:order:7 {{x}}"

    assert client.get(key) == b"1"
    assert 6 * 86400 < client.ttl(key) <= 7 * 86400


async def test_a_server_that_is_away_is_no_count_of_zero() -> None:
    counter = wiring.attempt_counter("redis://127.0.0.1:1")
    for ask in (counter.add("m1"), counter.get("m1"), counter.forget("m1")):
        with pytest.raises(BrokerUnavailable):
            await ask
    await counter.aclose()


def test_another_url_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigError, match="attempt counter: expected") as caught:
        wiring.attempt_counter("mysql://shop:s3cret@host")

    assert "s3cret" not in str(caught.value)
