import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import pytest

from redrive.core.delivery import Delivery
from redrive.core.errors import LetterNotFound
from redrive.core.life import LetterState
from redrive.core.ports import Options
from redrive.core.query import Query
from redrive.core.redrive import Redrive, RedriveState
from redrive.triage import editor, redrives
from tests.unit.triage.bench import Bench, begin, fails_the_same_way, redriver, succeeds, verdict


async def until(look: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Return when what is looked at is as wanted."""
    while await look() != wanted:  # noqa: ASYNC110 - looking is how a store is asked
        await asyncio.sleep(0)


# ----------------------------------------------------------------------------------------------- the screen


async def test_a_canary_redrive_with_a_fixed_handler_resolves_everything() -> None:
    bench = Bench()
    await bench.collect(1000)
    redrive = await begin(bench, canary=(1, 5, 25))

    ended = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), succeeds)

    assert ended.state is RedriveState.DONE
    assert await bench.states() == {"resolved": 1000}
    assert await verdict(bench, ended) == (
        "Sent 1, it succeeded on version v2; sent 5, then 25, then 969: 1,000 resolved, 0 unconfirmed"
    )


async def test_a_canary_redrive_with_a_broken_handler_stops_after_the_first() -> None:
    bench = Bench()
    await bench.collect(1000)
    redrive = await begin(bench, canary=(1, 5, 25))

    ended = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), fails_the_same_way)

    assert ended.state is RedriveState.STOPPED
    assert await verdict(bench, ended) == "stopped after 1: same failure, 999 untouched"
    assert await bench.states() == {"open": 1000}
    assert len(bench.published) == 1


async def test_a_canary_that_fails_in_another_way_pauses_and_says_so() -> None:
    bench = Bench()
    await bench.collect(100)
    redrive = await begin(bench, canary=(10,))
    one = iter([None, None, None, "another way"])

    paused = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), lambda _: next(one, None))

    assert paused.state is RedriveState.PAUSED
    assert paused.why == "1 failed in another way"
    assert "paused: 1 failed in another way; 90 untouched" in await verdict(bench, paused)


async def test_a_person_who_has_seen_the_other_failure_may_go_on() -> None:
    bench = Bench()
    await bench.collect(100)
    redrive = await begin(bench, canary=(10,))
    one = iter(["another way"])
    await bench.while_consuming(redriver(bench).run(redrive.redrive_id), lambda _: next(one, None))

    await redrives.resume(bench.desk, redrive.redrive_id)
    ended = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), succeeds)

    assert ended.state is RedriveState.DONE
    assert await bench.states() == {"open": 1, "resolved": 99}


async def test_canaries_have_one_attempt_and_the_rest_has_all() -> None:
    bench = Bench()
    await bench.collect(5)
    redrive = await begin(bench, canary=(2,))
    allowed: list[int | None] = []

    def note(delivery: Delivery) -> None:
        allowed.append(delivery.attempts_allowed)

    await bench.while_consuming(redriver(bench).run(redrive.redrive_id), note)

    assert allowed == [1, 1, None, None, None]


# ----------------------------------------------------------------------------------------------- while it waits


async def test_with_no_consumer_alive_it_says_so_and_pauses_when_the_time_is_over() -> None:
    bench = Bench()
    await bench.collect(10)
    redrive = await begin(bench, canary=(1,), report_within=timedelta(minutes=1))

    paused = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), None)

    assert "no consumer is alive on this queue" in {one.waiting for one in bench.told}
    assert paused.state is RedriveState.PAUSED
    assert paused.why == "1 not heard of within 0:01:00: no consumer is alive on this queue"


async def test_a_consumer_that_is_paused_or_still_the_old_version_is_named() -> None:
    bench = Bench()
    await bench.collect(10)
    await bench.consume(succeeds, version="v1")
    redrive = await begin(bench, report_within=timedelta(seconds=5))

    await bench.while_consuming(redriver(bench).run(redrive.redrive_id), None)
    assert "the consumer's version is unchanged since the failure: v1" in {one.waiting for one in bench.told}

    bench.told.clear()
    await bench.broker.pause("orders", group="shop", why="a rollout")
    again = await begin(bench, again=True, report_within=timedelta(seconds=5))
    await bench.while_consuming(redriver(bench).run(again.redrive_id), None)
    assert "the consumer is paused: a rollout" in {one.waiting for one in bench.told}


async def test_without_canaries_what_is_not_heard_of_ends_unconfirmed_and_a_late_report_still_resolves_it() -> None:
    bench = Bench()
    await bench.collect(3)
    redrive = await begin(bench)

    ended = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), None)
    assert await verdict(bench, ended) == "Sent 3: 0 resolved, 3 unconfirmed"

    await bench.consume(succeeds)
    assert await verdict(bench, ended) == "Sent 3, succeeding on version v2: 3 resolved, 0 unconfirmed"
    assert await bench.states() == {"resolved": 3}


async def test_quiet_consumers_are_shown_as_quiet_and_never_as_succeeded() -> None:
    bench = Bench()
    await bench.collect(3, group="")
    redrive = await begin(bench, confirm="quiet", report_within=timedelta(minutes=10))

    ended = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), None)

    assert await verdict(bench, ended) == "Sent 3: 0 resolved, 0 unconfirmed, 3 quiet"
    assert await bench.states() == {"redriving": 3}


# ----------------------------------------------------------------------------------------------- rate and people


async def test_the_rate_is_kept() -> None:
    bench = Bench()
    await bench.collect(100)
    redrive = await begin(bench, rate=20)
    began_at = bench.clock.now()

    await bench.while_consuming(redriver(bench).run(redrive.redrive_id), succeeds)

    assert bench.clock.now() - began_at >= timedelta(seconds=100 / 20 - 0.1)


@pytest.mark.parametrize("rate", [0.01, 1e-300, 5e-324])
async def test_a_slow_redrive_stays_in_one_hand_and_can_be_cancelled(rate: float) -> None:
    bench = Bench()
    await bench.collect(3)
    redrive = await begin(bench, rate=rate)
    replicas = [asyncio.ensure_future(redriver(bench).run(redrive.redrive_id)) for _ in range(2)]

    for _ in range(90):
        await asyncio.sleep(0.001)
        bench.clock.advance("1s")
    there = await bench.states()
    await redrives.cancel(bench.desk, redrive.redrive_id)
    for _ in range(10):
        await asyncio.sleep(0.001)
        bench.clock.advance("1s")

    assert there == {"open": 2, "redriving": 1}
    assert [one.done() and one.result().state for one in replicas] == [RedriveState.CANCELLED] * 2


async def test_a_pause_is_obeyed_between_chunks_and_resuming_goes_on() -> None:
    bench = Bench()
    await bench.collect(100)
    redrive = await begin(bench)
    seen: list[Delivery] = []

    def pause_at_30(delivery: Delivery) -> None:
        seen.append(delivery)
        if len(seen) == 30:
            task.append(asyncio.ensure_future(redrives.pause(bench.desk, redrive.redrive_id)))

    task: list[asyncio.Future[Redrive]] = []
    paused = await bench.while_consuming(redriver(bench, chunk=10).run(redrive.redrive_id), pause_at_30)
    assert paused.state is RedriveState.PAUSED
    assert paused.why == "by sam"

    await redrives.resume(bench.desk, redrive.redrive_id)
    ended = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), succeeds)
    assert ended.state is RedriveState.DONE
    assert await bench.states() == {"resolved": 100}


async def test_cancelling_leaves_the_rest_untouched() -> None:
    bench = Bench()
    await bench.collect(50)
    redrive = await begin(bench, canary=(5,))
    running = asyncio.ensure_future(redriver(bench).run(redrive.redrive_id))
    await until(bench.states, {"open": 45, "redriving": 5})

    await redrives.cancel(bench.desk, redrive.redrive_id, why="wrong incident")
    ended = await bench.while_consuming(asyncio.wait_for(running, None), None)

    assert ended.state is RedriveState.CANCELLED
    assert await bench.states() == {"open": 45, "redriving": 5}
    await bench.consume(succeeds)
    assert await bench.states() == {"open": 45, "resolved": 5}


async def test_letters_that_have_changed_since_the_preview_are_skipped() -> None:
    bench = Bench()
    await bench.collect(10)
    redrive = await begin(bench)
    await bench.store.discard({"letter-3": 1}, act=bench.desk.act("letters.discard"))

    ended = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), succeeds)

    assert await verdict(bench, ended) == (
        "Sent 9, succeeding on version v2: 9 resolved, 0 unconfirmed"
        ", 1 skipped, changed since the preview or without a payload to send"
    )


async def test_two_redrivers_share_nothing_and_one_of_them_watches() -> None:
    bench = Bench()
    await bench.collect(100)
    redrive = await begin(bench, canary=(1, 5))

    async def both() -> Sequence[Redrive]:
        return await asyncio.gather(*(one.run(redrive.redrive_id) for one in (redriver(bench), redriver(bench))))

    ended = await bench.while_consuming(both(), succeeds)

    assert [one.state for one in ended] == [RedriveState.DONE] * 2
    assert "another process carries it out" in {one.waiting for one in bench.told}
    assert Counter(bench.published).most_common(1)[0][1] == 1


async def test_serving_takes_up_what_is_to_run_and_what_is_begun_later() -> None:
    bench = Bench()
    await bench.collect(5)
    await begin(bench)
    serving = asyncio.ensure_future(redriver(bench).serve())

    await bench.while_consuming(until(bench.states, {"resolved": 5}), succeeds)
    await bench.collect(5, prefix="later")
    await begin(bench)
    await bench.while_consuming(until(bench.states, {"resolved": 10}), succeeds)
    serving.cancel()

    assert await bench.states() == {"resolved": 10}


# ----------------------------------------------------------------------------------------------- what is sent


async def test_foreign_letters_go_to_the_queue_itself_without_marks() -> None:
    bench = Bench()
    await bench.collect(1, group="")
    redrive = await begin(bench, confirm="manual", report_within=timedelta(seconds=1))
    await bench.while_consuming(redriver(bench).run(redrive.redrive_id), None)

    reader = await bench.broker.subscribe("orders", group="anyone", options=Options(owner="reader"))
    (delivery,) = await reader.fetch(10, wait=timedelta(0))

    assert delivery.message.body == b'{"order": 0}'
    assert delivery.letter_id is None


async def test_an_edited_letter_goes_as_edited_with_a_key_for_side_effects_of_its_own() -> None:
    bench = Bench()
    await bench.collect(2)
    await editor.edit(bench.desk, "letter-1", body=b"mended")
    redrive = await begin(bench)
    seen: dict[str, tuple[bytes, str]] = {}

    def note(delivery: Delivery) -> None:
        seen[str(delivery.letter_id)] = delivery.message.body, delivery.message.idempotency_key

    await bench.while_consuming(redriver(bench).run(redrive.redrive_id), note)

    assert seen["letter-0"] == (b'{"order": 0}', "orders:message-0")
    assert seen["letter-1"] == (b"mended", "orders:message-1~edit-1")


async def test_a_letter_of_a_broker_that_is_not_at_hand_pauses_the_redrive() -> None:
    bench = Bench()
    await bench.collect(3, broker="elsewhere")
    redrive = await begin(bench)

    paused = await bench.while_consuming(redriver(bench).run(redrive.redrive_id), None)

    assert paused.state is RedriveState.PAUSED
    assert paused.why == "a letter cannot be sent: no broker named 'elsewhere' is at hand"


async def test_a_letter_dead_again_is_the_same_letter_and_may_be_sent_again() -> None:
    bench = Bench()
    await bench.collect(1)
    await bench.while_consuming(redriver(bench).run((await begin(bench)).redrive_id), fails_the_same_way)
    stored = await bench.get()
    assert (stored.life.state, stored.life.generation) == (LetterState.OPEN, 1)

    await bench.while_consuming(redriver(bench).run((await begin(bench)).redrive_id), succeeds)
    stored = await bench.get()

    assert (stored.life.state, stored.life.generation) == (LetterState.RESOLVED, 2)
    assert await bench.ids(Query()) == ["letter-0"]


async def test_a_redrive_that_is_not_there_is_not_found() -> None:
    with pytest.raises(LetterNotFound):
        await redriver(Bench()).run("nothing")
