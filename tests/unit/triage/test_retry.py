"""One letter sent back at once."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.core.errors import BrokerUnavailable, DeadLetterError, StateConflict
from redrive.core.life import LetterState
from redrive.core.redrive import SendBack
from redrive.triage import editor, retry
from tests.unit.triage.bench import Bench, redriver, succeeds


async def test_a_letter_that_changed_since_it_was_looked_at_is_not_sent() -> None:
    bench = Bench()
    await bench.collect(1)
    seen = await bench.get()
    await editor.edit(bench.desk, "letter-0", body=b"changed")

    with pytest.raises(StateConflict, match="has changed since"):
        await retry.retry(bench.desk, seen, brokers=bench.brokers)

    assert (await bench.get()).life.state is LetterState.OPEN
    (redrive,) = await bench.store.unfinished()
    assert (await bench.while_consuming(redriver(bench).run(redrive.redrive_id), None)).state == "done"


async def test_a_letter_of_a_queue_that_cannot_be_one_is_not_claimed() -> None:
    bench = Bench()
    await bench.collect(1, queue="../etc", group="")

    with pytest.raises(DeadLetterError, match="cannot be sent back: queue: expected"):
        await retry.retry(bench.desk, await bench.get(), brokers=bench.brokers)

    assert (await bench.get()).life.state is LetterState.OPEN
    assert await bench.store.unfinished() == []


async def test_of_two_retries_at_once_one_sends() -> None:
    bench = Bench()
    await bench.collect(1)
    seen = await bench.get()

    answers = await asyncio.gather(
        *(retry.retry(bench.desk, seen, brokers=bench.brokers) for _ in range(2)), return_exceptions=True
    )
    await bench.consume(succeeds)

    assert sorted(type(answer).__name__ for answer in answers) == ["Retried", "StateConflict"]
    assert bench.published == ["letter-0:1"]


async def test_a_broker_that_says_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(MemoryBroker):
        async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
            await asyncio.Event().wait()
            return ()

    monkeypatch.setattr(retry, "LEASE", timedelta(milliseconds=1))
    bench = Bench()
    await bench.collect(1)

    with pytest.raises(BrokerUnavailable, match="does not answer; letter letter-0 is claimed by redrive"):
        await retry.retry(bench.desk, await bench.get(), brokers={"memory": Silent(clock=bench.clock)})

    (redrive,) = await bench.store.unfinished()
    await bench.while_consuming(redriver(bench).run(redrive.redrive_id), succeeds)
    assert bench.published == ["letter-0:1"]
