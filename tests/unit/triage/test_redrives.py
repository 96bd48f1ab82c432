import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.core.errors import ConfigError, StateConflict
from redrive.core.life import LetterState
from redrive.core.ports import Options
from redrive.core.redrive import Redrive, RedriveState, Target
from redrive.triage import aside, audit, letters, redrives, remarks
from redrive.triage.redrives import Plan, Terms
from redrive.triage.selection import Wanted
from tests.unit.triage.bench import Bench, redriver, succeeds, verdict


async def plan(bench: Bench, **terms: Any) -> Plan:
    selection = await bench.selection(everything=True, states=tuple(LetterState))
    return await redrives.plan(selection, Terms(**terms), brokers=bench.brokers)


@pytest.mark.parametrize(
    ("terms", "mistake"),
    [
        ({"canary": (0, 5)}, "canary: expected steps of 1 or more"),
        ({"rate": 0}, "rate: expected more than 0"),
        ({"rate": float("nan")}, "rate: expected more than 0"),
        ({"to": "moon"}, "to: expected lane or queue"),
        ({"confirm": "maybe"}, "confirm: expected reported, quiet or manual"),
    ],
)
def test_terms_that_cannot_work_are_refused(terms: Any, mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        Terms(**terms)


async def test_a_plan_tells_steps_and_targets_and_does_nothing() -> None:
    bench = Bench()
    await bench.collect(40)

    planned = await plan(bench, canary=(1, 5))

    assert planned.sizes == (1, 5, 34)
    assert planned.targets == {Target("memory", "orders", "shop"): 40}
    assert planned.remarks == []
    assert planned.preview.count == 40
    assert await bench.states() == {"open": 40}
    assert (await redrives.find(bench.desk)).rows == []


async def test_a_plan_says_who_will_see_letters_that_go_to_the_queue_itself() -> None:
    bench = Bench()
    await bench.collect(2, group="")
    for group in ("shop", "audit"):
        await bench.broker.subscribe("orders", group=group, options=Options(owner="x"))

    planned = await plan(bench)

    assert planned.targets == {Target("memory", "orders"): 2}
    assert planned.remarks == [
        "letters go to the queue orders itself, every group sees them: audit, shop; nothing reports back"
    ]


class Counted(MemoryBroker):
    """Knows how often it was asked for its queues; `slow` ones never answer."""

    asked = 0
    slow = False

    async def queues(self) -> Sequence[tuple[str, str]]:
        self.asked += 1
        if self.slow:
            await asyncio.Event().wait()
        return await super().queues()


async def test_a_broker_is_asked_once_however_many_of_its_queues_letters_go_to() -> None:
    bench = Bench()
    bench.broker = bench.brokers["memory"] = broker = Counted(clock=bench.clock)
    for queue in ("orders", "bills", "mail"):
        await bench.collect(1, prefix=queue, queue=queue, group="")
    await broker.subscribe("bills", group="shop", options=Options(owner="x"))

    planned = await plan(bench)

    assert broker.asked == 1
    assert planned.remarks == [
        "letters go to the queue orders itself, no group reads it yet; nothing reports back",
        "letters go to the queue bills itself, every group sees them: shop; nothing reports back",
        "letters go to the queue mail itself, no group reads it yet; nothing reports back",
    ]


async def test_a_broker_that_does_not_answer_holds_up_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remarks, "PATIENCE", timedelta(milliseconds=10))
    bench = Bench()
    bench.broker = bench.brokers["memory"] = broker = Counted(clock=bench.clock)
    broker.slow = True
    await bench.collect(2, group="")
    await bench.collect(1, prefix="bill", queue="bills", group="")

    planned = await plan(bench)

    assert planned.remarks == [
        "the broker memory is away, letters wait until it is back: no answer within 0.01 s",
    ]


async def test_letters_that_go_to_their_lane_need_no_answer_of_a_broker() -> None:
    bench = Bench()
    bench.broker = bench.brokers["memory"] = broker = Counted(clock=bench.clock)
    await bench.collect(2)

    assert (await plan(bench)).remarks == []
    assert broker.asked == 0


async def test_a_large_selection_is_planned_and_begun_as_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    await bench.collect(6)
    await bench.collect(3, prefix="bill", error_type="KeyError")
    selection = await bench.selection()
    small = await redrives.plan(selection, Terms(canary=(1, 2)), brokers=bench.brokers, redrive_id="5f0c2a91d7e4")
    monkeypatch.setattr(aside, "LARGE", 2)
    large = await redrives.plan(selection, Terms(canary=(1, 2)), brokers=bench.brokers, redrive_id="5f0c2a91d7e4")

    assert large == small
    assert large.sizes == (2, 4, 3)
    begun = await begin(bench, large.token, canary=(1, 2))
    assert [sum(step.values()) for step in (await redrives.show(bench.desk, begun.redrive_id)).progress.steps] == [
        2,
        4,
        3,
    ]


async def test_a_plan_says_what_it_leaves_out_and_what_it_cannot_reach() -> None:
    bench = Bench()
    await bench.collect(3)
    await letters.discard(bench.desk, await bench.selection(letter_ids=["letter-0"]))
    await bench.collect(1, prefix="parked", generation=5)
    await bench.collect(1, prefix="far", broker="kafka")

    planned = await plan(bench)

    assert planned.preview.count == 3
    assert planned.remarks == [
        "1 left out: discarded",
        "1 left out: parked, at the generation cap; sent only if over-cap is asked for",
        "no broker named 'kafka' is at hand: its letters cannot be sent from here",
    ]
    assert (await plan(bench, over_cap=True)).preview.by_state == {"open": 3, "parked": 1}


async def test_letters_of_a_queue_that_cannot_be_one_are_left_out_and_hold_up_nobody() -> None:
    bench = Bench()
    await bench.collect(2)
    await bench.collect(1, prefix="foreign", queue="../etc", group="")

    planned = await plan(bench)

    assert [row.letter_id for row in planned.selection.rows] == ["letter-0", "letter-1"]
    assert planned.remarks == ["1 left out: no queue can be named ../etc"]


@pytest.mark.parametrize("name", ["~retry", "../x", "{}", "a b", "a\nb", "x" * 250])
async def test_a_target_that_cannot_be_a_queue_is_refused(name: str) -> None:
    bench = Bench()
    await bench.collect(1)

    with pytest.raises(ConfigError, match="queue: expected"):
        await plan(bench, target_queue=name)


async def test_another_queue_means_the_queue_itself_unless_the_lane_is_asked_for() -> None:
    bench = Bench()
    await bench.collect(1)

    assert [*(await plan(bench, target_queue="repairs")).targets] == [Target("memory", "repairs")]
    assert [*(await plan(bench, target_queue="repairs", to="lane")).targets] == [Target("memory", "repairs", "shop")]


async def test_a_redrive_is_created_as_planned_and_audited() -> None:
    bench = Bench()
    await bench.collect(10)
    planned = await plan(bench, canary=(2,), rate=5)

    redrive = await redrives.create(bench.desk, planned)
    shown = await redrives.show(bench.desk, redrive.redrive_id)

    assert (redrive.by, redrive.total, redrive.steps, redrive.failed_on) == ("sam", 10, (2,), ("v1",))
    assert shown.redrive == redrive
    assert [sum(step.values()) for step in shown.progress.steps] == [2, 8]
    (record,) = (await audit.find(bench.desk)).rows
    assert (record.verb, record.count) == ("letters.redrive", 10)


async def begin(bench: Bench, token: str, **terms: Any) -> Redrive:
    return await redrives.begin(bench.desk, Wanted(everything=True), Terms(**terms), token, brokers=bench.brokers)


async def preview(bench: Bench, **terms: Any) -> Plan:
    return await redrives.plan(await bench.selection(everything=True), Terms(**terms), brokers=bench.brokers)


async def test_what_was_previewed_is_recalled_and_letters_that_came_since_are_left_alone() -> None:
    bench = Bench()
    await bench.collect(5)
    token = (await preview(bench, canary=(1,))).token
    await bench.collect(3, prefix="later")

    begun = await begin(bench, token, canary=(1,))
    first = await bench.desk.store.claim(begun.redrive_id, step=0, limit=10)
    others = await bench.desk.store.claim(begun.redrive_id, step=1, limit=10)

    assert (begun.total, len(first), len(others)) == (5, 1, 4)
    assert {one.letter_id for one in (*first, *others)} == {f"letter-{number}" for number in range(5)}


async def test_a_letter_that_relapses_after_the_preview_is_left_alone_too() -> None:
    bench = Bench()
    early, _ = await bench.collect(2)
    await letters.discard(bench.desk, await bench.selection(letter_ids=[early.letter_id]))
    await bench.collect(1, prefix="third")
    token = (await preview(bench)).token
    await bench.store.collect([replace(early, generation=1)])

    begun = await begin(bench, token)
    sent = await bench.desk.store.claim(begun.redrive_id, step=0, limit=10)

    assert [one.letter_id for one in sent] == ["letter-1", "third-0"]


async def test_what_was_previewed_is_begun_once_by_whoever_asks_again() -> None:
    bench = Bench()
    await bench.collect(5)
    token = (await preview(bench, canary=(1,))).token

    begun = await begin(bench, token, canary=(1,))
    await bench.desk.store.claim(begun.redrive_id, step=0, limit=1)  # its version is another one now

    assert await begin(bench, token, canary=(1,)) == begun
    assert len((await redrives.find(bench.desk)).rows) == 1


async def test_a_new_preview_of_the_same_letters_begins_another_redrive() -> None:
    bench = Bench()
    await bench.collect(5)
    tokens = [(await preview(bench)).token for _ in range(2)]

    begun = [await begin(bench, token) for token in tokens]

    assert begun[0].redrive_id != begun[1].redrive_id


async def test_what_changed_since_the_preview_is_not_sent() -> None:
    bench = Bench()
    await bench.collect(5)
    token = (await preview(bench)).token
    await letters.discard(bench.desk, await bench.selection(letter_ids=["letter-2"]))

    with pytest.raises(StateConflict, match="look again"):
        await begin(bench, token)


async def test_other_terms_than_those_previewed_are_not_what_was_previewed() -> None:
    bench = Bench()
    await bench.collect(5)
    token = (await preview(bench, canary=(1,))).token

    with pytest.raises(StateConflict, match="not what was previewed"):
        await begin(bench, token)


async def test_a_preview_of_nothing_does_not_let_in_what_came_since() -> None:
    bench = Bench()
    token = (await preview(bench)).token
    await bench.collect(1)

    with pytest.raises(StateConflict):
        await begin(bench, token)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "5",
        "x.abc",
        ".",
        "-1.abc",
        "٣.abc",
        "9" * 5000 + ".a",
        "12345678.a",
        "1.0f343b0931126a20f133d67c2b018a3b.5f0c2a91d7e4",
        f"1.{'9' * 19}.0f343b0931126a20f133d67c2b018a3b.5f0c2a91d7e4",
        "1.0f.xyz",
        "x.5f0c2a91d7e4",
        "5.5f0c2a91d7e4",
    ],
)
async def test_a_token_that_is_none_is_refused(token: str) -> None:
    bench = Bench()
    await bench.collect(1)

    with pytest.raises(ConfigError, match="expected the token of a dry run"):
        await begin(bench, token)


async def test_there_is_no_redrive_of_nothing() -> None:
    bench = Bench()

    with pytest.raises(StateConflict, match="nothing to send back"):
        await redrives.create(bench.desk, await plan(bench))


async def test_what_was_out_in_a_cancelled_redrive_is_sent_once_more_if_asked_for() -> None:
    bench = Bench()
    await bench.collect(3)
    first = await redrives.create(bench.desk, await plan(bench))
    await bench.store.claim(first.redrive_id, step=0, limit=2)
    await redrives.cancel(bench.desk, first.redrive_id)
    assert await verdict(bench, first) == "Sent 2; cancelled: 0 resolved, 2 unconfirmed, 1 untouched"

    second = await redrives.create(bench.desk, await plan(bench, again=True))
    ended = await bench.while_consuming(redriver(bench).run(second.redrive_id), succeeds)

    assert await verdict(bench, ended) == "Sent 3, succeeding on version v2: 3 resolved, 0 unconfirmed"
    assert sorted(bench.published) == ["letter-0:2", "letter-1:2", "letter-2:1"]


async def test_a_redrive_that_has_ended_does_not_begin_again() -> None:
    bench = Bench()
    await bench.collect(2)
    redrive = await redrives.create(bench.desk, await plan(bench))

    assert (await redrives.pause(bench.desk, redrive.redrive_id)).state is RedriveState.PAUSED
    assert (await redrives.pause(bench.desk, redrive.redrive_id)).state is RedriveState.PAUSED
    assert (await redrives.resume(bench.desk, redrive.redrive_id)).state is RedriveState.RUNNING
    assert (await redrives.cancel(bench.desk, redrive.redrive_id)).state is RedriveState.CANCELLED
    with pytest.raises(StateConflict, match="has ended: cancelled"):
        await redrives.resume(bench.desk, redrive.redrive_id)
