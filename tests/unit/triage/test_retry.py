"""One letter sent back at once."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.core.errors import BrokerError, BrokerUnavailable, DeadLetterError, StateConflict, StoreUnavailable
from redrive.core.life import LetterState
from redrive.core.redrive import RedriveState, SendBack
from redrive.core.stored import Claimed
from redrive.stores.memory import MemoryStore
from redrive.triage import audit, editor, redrives, retry
from redrive.triage.desk import Desk
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
    assert (await retry.retry(bench.desk, await bench.get(), brokers=bench.brokers)).redrive_id != redrive.redrive_id


async def test_a_letter_of_a_queue_that_cannot_be_one_is_not_claimed() -> None:
    bench = Bench()
    await bench.collect(1, queue="../etc", group="")

    with pytest.raises(DeadLetterError, match="cannot be sent back: queue: expected"):
        await retry.retry(bench.desk, await bench.get(), brokers=bench.brokers)

    assert (await bench.get()).life.state is LetterState.OPEN
    assert await bench.store.unfinished() == []


async def test_of_many_retries_at_once_one_sends_and_the_others_leave_no_trace() -> None:
    bench = Bench()
    await bench.collect(1)
    seen = await bench.get()

    answers = await asyncio.gather(
        *(retry.retry(bench.desk, seen, brokers=bench.brokers) for _ in range(20)), return_exceptions=True
    )
    await bench.consume(succeeds)
    late = await asyncio.gather(retry.retry(bench.desk, seen, brokers=bench.brokers), return_exceptions=True)

    assert Counter(type(answer).__name__ for answer in (*answers, *late)) == {"Retried": 1, "StateConflict": 20}
    assert bench.published == ["letter-0:1"]
    assert len((await bench.store.redrives()).rows) == 1
    assert [one.letter_id for one in (await audit.find(bench.desk)).rows] == ["letter-0", ""]


async def test_a_letter_that_an_ended_retry_did_not_send_can_be_retried() -> None:
    class Flaky(MemoryStore):
        away = True

        async def claim(self, redrive_id: str, *, step: int, limit: int) -> Sequence[Claimed]:
            if self.away:
                raise StoreUnavailable("the store is away")
            return await super().claim(redrive_id, step=step, limit=limit)

    bench = Bench()
    bench.store = store = Flaky(clock=bench.clock)
    bench.desk = Desk(store, bench.clock, "sam")
    await bench.collect(1)
    with pytest.raises(StoreUnavailable):
        await retry.retry(bench.desk, await bench.get(), brokers=bench.brokers)
    (first,) = await store.unfinished()
    await redrives.cancel(bench.desk, first.redrive_id)
    store.away = False

    again = await retry.retry(bench.desk, await bench.get(), brokers=bench.brokers)
    await bench.consume(succeeds)

    assert again.redrive_id != first.redrive_id
    assert bench.published == ["letter-0:1"]


async def test_a_broker_that_says_no_pauses_the_redrive_which_is_named_and_can_be_resumed() -> None:
    class Wrong(MemoryBroker):
        async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
            raise BrokerError("the key orders is no stream")

    bench = Bench()
    await bench.collect(1)
    brokers = {"memory": Wrong(clock=bench.clock)}

    with pytest.raises(BrokerError, match="is no stream; letter letter-0 is claimed by redrive") as refused:
        await retry.retry(bench.desk, await bench.get(), brokers=brokers)
    (redrive,) = (await bench.store.redrives()).rows

    assert f"redrive {redrive.redrive_id}, which is paused; resume it once" in str(refused.value)
    assert (redrive.state, redrive.why) == (
        RedriveState.PAUSED,
        "a letter cannot be sent: the key orders is no stream",
    )
    await redrives.resume(bench.desk, redrive.redrive_id)
    await bench.while_consuming(redriver(bench).run(redrive.redrive_id), succeeds)
    assert bench.published == ["letter-0:1"]
    assert (await bench.get()).life.state is LetterState.RESOLVED


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
