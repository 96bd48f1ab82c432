"""What a redriver tells of how redrives end."""

from dataclasses import replace
from datetime import timedelta

import pytest

from redrive.core.event import Event, RedriveHalted, RedriveUnheard
from redrive.core.redrive import ItemStatus, RedriveState
from redrive.observe.bus import Bus
from redrive.triage import redrives
from redrive.triage.ending import mark
from redrive.triage.redriver import Redriver
from tests.unit.triage.bench import Bench, Verdict, begin, fails_the_same_way, succeeds


@pytest.mark.parametrize(("consumer", "state"), [(succeeds, "done"), (fails_the_same_way, "stopped")])
async def test_the_end_of_a_redrive_is_told_once(consumer: Verdict, state: str) -> None:
    bench, events = Bench(), list[Event]()
    await bench.collect(20)
    redrive = await begin(bench, canary=(1,))
    redriver = Redriver(bench.store, bench.brokers, clock=bench.clock, sink=Bus(events.append))

    await bench.while_consuming(redriver.run(redrive.redrive_id), consumer)
    await redriver.run(redrive.redrive_id)

    (told,) = events
    assert isinstance(told, RedriveHalted)
    assert (told.redrive_id, told.state) == (redrive.redrive_id, state)


@pytest.mark.parametrize("confirm", ["reported", "quiet"])
async def test_letters_that_were_not_heard_of_are_told_by_their_number(confirm: str) -> None:
    bench, events = Bench(), list[Event]()
    await bench.collect(3)
    redrive = await begin(bench, confirm=confirm, report_within=timedelta(seconds=5))
    redriver = Redriver(bench.store, bench.brokers, clock=bench.clock, sink=Bus(events.append))

    await bench.while_consuming(redriver.run(redrive.redrive_id), None)

    told, ended = events
    assert isinstance(told, RedriveUnheard)
    assert isinstance(ended, RedriveHalted)
    assert (told.queue, told.letters, told.quiet) == ("orders", 3, confirm == "quiet")


@pytest.mark.parametrize("end", ["cancelled", "stopped"])
async def test_letters_that_are_out_when_a_redrive_ends_are_told_as_not_heard_of(end: str) -> None:
    bench, events = Bench(), list[Event]()
    await bench.collect(20)
    desk = replace(bench.desk, sink=Bus(events.append))
    redrive = await begin(bench)
    claimed = await bench.store.claim(redrive.redrive_id, step=0, limit=5)
    messages = {one.letter_id: f"back-{one.letter_id}" for one in claimed}
    await bench.store.sent(redrive.redrive_id, messages, at=bench.clock.now())
    if end == "cancelled":
        await redrives.cancel(desk, redrive.redrive_id)
        await redrives.cancel(desk, redrive.redrive_id)
    else:
        act = desk.act("redrives.stop")
        await mark(bench.store, redrive, RedriveState.STOPPED, why="", act=act, sink=desk.sink)
    progress = await bench.store.progress(redrive.redrive_id)

    (told,) = events
    assert isinstance(told, RedriveUnheard)
    assert (told.broker, told.queue, told.letters, told.quiet) == ("memory", "orders", 5, False)
    assert progress.count(ItemStatus.UNCONFIRMED) == 5
