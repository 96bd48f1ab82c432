"""Many redrives at once: one that goes wrong leaves the others alone, and those that wait cost little."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, StoreError
from redrive.core.event import BrokerFaulted, Event
from redrive.core.redrive import Redrive, RedriveState, SendBack
from redrive.core.stored import StoredLetter
from redrive.observe.bus import Bus
from redrive.triage.redriver import Redriver
from redrive.triage.retry import retry
from redrive.triage.watch import why
from tests.unit.triage.bench import Bench, begin, redriver, succeeds


class Faulty:
    """A broker that fails on one queue in a way that nobody has thought of, until it is mended."""

    def __init__(self, bench: Bench, queue: str, *, error: Exception) -> None:
        self._bench = bench
        self._queue = queue
        self._error = error
        self.mended = False
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bench.broker, name)

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        if not self.mended and any(item.queue == self._queue for item in items):
            self.asked += 1
            raise self._error
        return await self._bench.broker.send_back(items)


class Counted:
    """A store or a broker that notes each call, and which leases were given to whom."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.calls = Counter[str]()
        self.leased = Counter[tuple[str, bool]]()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            answer = await call(*args, **kwargs)
            if name == "take" and kwargs["until"] > kwargs["now"]:
                self.leased[kwargs["owner"], answer] += 1
            return answer

        return counted


async def passing(bench: Bench, delay: timedelta, *, every: str = "100ms") -> None:
    """Let time pass while others work."""
    ends_at = bench.clock.now() + delay
    while bench.clock.now() < ends_at:
        for _ in range(20):
            await asyncio.sleep(0)
        bench.clock.advance(every)


async def retried(bench: Bench, stored: StoredLetter) -> Redrive:
    done = await retry(bench.desk, stored, brokers=bench.brokers)
    return await bench.store.redrive(done.redrive_id)


# ----------------------------------------------------------------------------------------------- one goes wrong


async def test_a_redrive_that_fails_as_nobody_thought_is_told_and_the_others_go_on() -> None:
    bench, events = Bench(), list[Event]()
    broker = Faulty(bench, "cursed", error=RuntimeError("a bug"))
    bench.brokers["memory"] = broker  # type: ignore[assignment]
    await bench.collect(1, queue="cursed", prefix="cursed")
    wrong = await begin(bench)
    await bench.collect(5)
    right = await begin(bench)
    serving = asyncio.ensure_future(
        Redriver(bench.store, bench.brokers, clock=bench.clock, sink=Bus(events.append)).serve()
    )

    while (await bench.store.redrive(right.redrive_id)).state is RedriveState.RUNNING:
        await bench.while_consuming(passing(bench, timedelta(seconds=1)), succeeds)
        assert not serving.done()
    told = [event for event in events if isinstance(event, BrokerFaulted)]

    assert [(event.call, event.why) for event in told] == [
        ("redrive", f"redrive {wrong.redrive_id}: RuntimeError: a bug")
    ]
    assert (await bench.store.redrive(wrong.redrive_id)).state is RedriveState.RUNNING
    assert (await bench.states())["resolved"] == 5
    serving.cancel()


async def test_a_redrive_that_went_wrong_is_taken_up_again_after_a_while_and_not_all_the_time() -> None:
    bench = Bench()
    broker = Faulty(bench, "cursed", error=RuntimeError("a bug"))
    bench.brokers["memory"] = broker  # type: ignore[assignment]
    await bench.collect(1, queue="cursed")
    redrive = await begin(bench)
    serving = asyncio.ensure_future(redriver(bench).serve())

    await passing(bench, timedelta(minutes=5))
    asked = broker.asked
    broker.mended = True
    await bench.while_consuming(passing(bench, timedelta(minutes=1)), succeeds, queue="cursed")

    assert 2 <= asked <= 10
    assert (await bench.store.redrive(redrive.redrive_id)).state is RedriveState.DONE
    assert await bench.states() == {"resolved": 1}
    serving.cancel()


async def test_a_list_of_redrives_that_cannot_be_had_does_not_end_those_under_way() -> None:
    bench, events = Bench(), list[Event]()
    await bench.collect(3)
    redrive = await begin(bench)

    class Damaged:
        lists = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(bench.store, name)

        async def unfinished(self) -> Sequence[Redrive]:
            self.lists += 1
            if self.lists > 1:
                raise StoreError("a row that nobody can read")
            return await bench.store.unfinished()

    served = Redriver(Damaged(), bench.brokers, clock=bench.clock, sink=Bus(events.append))
    serving = asyncio.ensure_future(served.serve())
    await passing(bench, timedelta(seconds=10))
    await bench.while_consuming(passing(bench, timedelta(seconds=10)), succeeds)

    assert not serving.done()
    assert (await bench.store.redrive(redrive.redrive_id)).state is RedriveState.DONE
    assert "StoreError: a row that nobody can read" in {
        event.why for event in events if isinstance(event, BrokerFaulted)
    }
    serving.cancel()


@pytest.mark.parametrize("error", [ConfigError("not a name"), BrokerError("refused")])
async def test_what_can_never_be_sent_pauses_its_redrive_with_the_reason(error: Exception) -> None:
    bench = Bench()
    bench.brokers["memory"] = Faulty(bench, "cursed", error=error)  # type: ignore[assignment]
    await bench.collect(1, queue="cursed")
    redrive = await begin(bench)
    serving = asyncio.ensure_future(redriver(bench).serve())

    await passing(bench, timedelta(seconds=3))

    paused = await bench.store.redrive(redrive.redrive_id)
    assert (paused.state, paused.why) == (RedriveState.PAUSED, f"a letter cannot be sent: {error}")
    serving.cancel()


@pytest.mark.parametrize("error", [ConfigError("a file of another Redrive"), BrokerError("refused")])
async def test_consumers_that_cannot_be_asked_about_are_told_as_such(error: Exception) -> None:
    bench = Bench()
    await bench.collect(1)
    redrive = await begin(bench)

    class Dumb:
        async def depth(self, queue: str, *, group: str) -> Any:
            raise error

    said = await why(redrive, {"memory": Dumb()})  # type: ignore[dict-item]

    assert str(error) in said


# ----------------------------------------------------------------------------------------------- waiting is cheap


async def test_a_redrive_that_waits_for_five_minutes_is_looked_at_less_and_less() -> None:
    bench = Bench()
    await bench.collect(1)
    redrive = await retried(bench, await bench.get())
    store, broker = Counted(bench.store), Counted(bench.broker)
    redriving = Redriver(store, {"memory": broker}, clock=bench.clock)

    ended = await bench.while_consuming(redriving.run(redrive.redrive_id), None)

    assert ended.state is RedriveState.DONE
    assert redrive.report_within == timedelta(minutes=5)
    assert store.calls["progress"] <= 70
    assert store.calls["take"] <= 45
    assert not broker.calls  # nobody hears why it waits


async def test_one_that_watches_another_looks_less_and_less_too_and_never_takes_over() -> None:
    bench = Bench()
    await bench.collect(1)
    redrive = await retried(bench, await bench.get())
    store = Counted(bench.store)
    first, second = (Redriver(store, {}, clock=bench.clock) for _ in range(2))

    async def both() -> Sequence[Redrive]:
        return await asyncio.gather(*(one.run(redrive.redrive_id) for one in (first, second)))

    ended = await bench.while_consuming(both(), None)

    assert [one.state for one in ended] == [RedriveState.DONE] * 2
    assert len({owner for owner, given in store.leased if given}) == 1
    assert store.calls["progress"] <= 140


@pytest.mark.parametrize("silence", [timedelta(seconds=5), timedelta(seconds=40), timedelta(seconds=200)])
async def test_a_report_is_noticed_within_two_seconds_or_a_tenth_of_the_silence(silence: timedelta) -> None:
    bench = Bench()
    await bench.collect(10)
    redrive = await begin(bench, canary=(1,))
    running = asyncio.ensure_future(redriver(bench).run(redrive.redrive_id))
    await passing(bench, silence)

    await bench.consume(succeeds)
    reported_at = bench.clock.now()
    noticed_at = await noticed(bench, {"resolved": 1, "redriving": 9})

    assert noticed_at - reported_at <= max(timedelta(seconds=2), silence / 10) + timedelta(milliseconds=200)
    ended = await bench.while_consuming(asyncio.wait_for(running, None), succeeds)
    assert ended.state is RedriveState.DONE


async def noticed(bench: Bench, states: dict[str, int]) -> datetime:
    while await bench.states() != states:
        await passing(bench, timedelta(milliseconds=100))
    return bench.clock.now()


async def test_a_broker_that_stays_away_is_asked_less_and_less() -> None:
    bench = Bench()
    broker = Faulty(bench, "orders", error=BrokerUnavailable("away"))
    bench.brokers["memory"] = broker  # type: ignore[assignment]
    await bench.collect(1)
    redrive = await begin(bench)
    running = asyncio.ensure_future(redriver(bench).run(redrive.redrive_id))

    await passing(bench, timedelta(minutes=5))
    asked = broker.asked
    broker.mended = True
    ended = await bench.while_consuming(asyncio.wait_for(running, None), succeeds)

    assert asked <= 70
    assert ended.state is RedriveState.DONE
