"""A broker whose failures are counted elsewhere too."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from redrive.brokers.counted import counted
from redrive.brokers.memory import MemoryBroker
from redrive.core.duration import NOW
from redrive.core.message import Message
from redrive.core.ports import Options
from redrive.testing.clock import ManualClock


class Counter:
    """One that does not answer until it is let."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()

    async def counts(self, message_ids: Sequence[str]) -> Sequence[int]:
        self.asked.set()
        await self.answers.wait()
        return [0] * len(message_ids)

    async def aclose(self) -> None: ...


async def test_what_was_fetched_is_handed_back_if_whoever_asked_goes_while_it_is_counted() -> None:
    counter: Any = Counter()
    broker = counted(MemoryBroker(clock=ManualClock()), counter)
    await broker.publish("orders", [Message("", "orders", b"1")])
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    fetching = asyncio.create_task(worker.fetch(1, wait=timedelta(seconds=1)))
    await counter.asked.wait()
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    counter.answers.set()
    (again,) = await worker.fetch(1, wait=NOW)

    assert (again.message.body, again.failures, again.crashes) == (b"1", 0, 0)
    await broker.aclose()
