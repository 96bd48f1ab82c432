"""A queue that confirms nothing, on a server that is there: only what goes to it waits."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from redrive.brokers.rabbitmq import RabbitBroker, link
from redrive.clock import SystemClock
from redrive.core.message import Message
from redrive.core.outcome import Settlement, SettleStatus
from redrive.core.ports import Options
from redrive.testing.conformance.bench import Bench, BrokerUnderTest
from tests.rabbitmq.conftest import PATIENCE
from tests.servers.rabbitmq import RabbitServer

QUEUE = "orders"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long."""
    monkeypatch.setattr(link, "PATIENCE", timedelta(seconds=3))


@pytest.fixture
async def bench(fresh_rabbitmq: RabbitServer) -> AsyncIterator[Bench]:
    broker = RabbitBroker(fresh_rabbitmq.url, clock=SystemClock())

    async def never(*_: object) -> RabbitBroker:
        raise NotImplementedError

    yield Bench(BrokerUnderTest(broker=broker, clock=SystemClock(), elapse=never, reopen=never), queue=QUEUE)  # type: ignore[arg-type]
    await broker.aclose()


@pytest.mark.usefixtures("hasty")
async def test_a_dlq_that_does_not_answer_holds_up_its_letters_and_nothing_else(
    fresh_rabbitmq: RabbitServer, bench: Bench
) -> None:
    worker = await bench.broker.subscribe(QUEUE, group="shop", options=Options(owner="a"))
    await bench.broker.publish(QUEUE, [Message("", QUEUE, b"%d" % number) for number in range(3)])
    bad, good, later = await worker.fetch(3, wait=PATIENCE)
    fresh_rabbitmq.control("eval", f"sys:suspend('%2F_{QUEUE}.dlq').")
    letter = bench.give_up(bad, worker)
    refused, done = await worker.settle([letter, Settlement(good)])

    assert (refused.status, done.status) == (SettleStatus.REFUSED, SettleStatus.DONE)
    assert f"'{QUEUE}.dlq' has confirmed nothing" in refused.why
    assert await worker.extend([bad, later]) == []  # the connection is as it was
    fresh_rabbitmq.control("eval", f"sys:resume('%2F_{QUEUE}.dlq').")
    assert [each.status for each in await worker.settle([letter, Settlement(later)])] == [SettleStatus.DONE] * 2
    assert {entry.letter.letter_id for entry in await bench.dlq.peek()} == {letter.letter.letter_id}  # type: ignore[union-attr]
