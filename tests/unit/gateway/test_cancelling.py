import asyncio
import gc
import logging
from pathlib import Path
from random import Random

import pytest

from redrive.core.errors import (
    AttemptTimeout,
    DeadlineExceeded,
    GatewayBusy,
    GatewayClosed,
    GatewayError,
    RequestIdConflict,
    RequestRejected,
    RetriesExhausted,
)
from redrive.core.policy import RetrySpec
from redrive.core.reason import Reason
from redrive.gateway import Gateway, LLMResponse, Post, Reply
from redrive.gateway.calls import Call
from redrive.gateway.ticket import Ticket
from redrive.testing import RecordingDeadLetterQueue
from tests.unit.gateway.stage import Provider, Stage, a_model, a_request, answer, kinds, on_stage, refusal, rows


async def never(_: Post) -> Reply:
    await asyncio.Event().wait()
    raise AssertionError


def is_idle(stage: Stage) -> bool:
    stats = stage.gateway.stats()["fast"]
    return (stats.queued, stats.in_flight, stats.waiting) == (0, 0, 0)


async def test_a_call_that_nobody_waits_for_is_broken_off(tmp_path: Path) -> None:
    async with on_stage(Provider(always=never), log_dir=tmp_path) as stage:
        future = await stage.gateway.submit(a_request())
        await stage.settle()
        future.cancel()
        await stage.settle()

        assert stage.provider.broken_off == 1
        assert is_idle(stage)
        assert stage.gateway.stats()["fast"].cancelled == 1
    assert [row["status"] for row in rows(tmp_path, "errors")] == ["cancelled"]
    assert stage.dlq.count == 0


async def test_a_queued_request_that_is_called_off_is_never_sent() -> None:
    async with on_stage(Provider(always=never), concurrency=1) as stage:
        first, second = await stage.gateway.submit_many([a_request("r1"), a_request("r2")])
        await stage.settle()
        second.cancel()
        first.cancel()
        await stage.settle()

        assert len(stage.provider.posts) == 1
        assert is_idle(stage)


async def test_a_request_that_waits_for_its_retry_can_be_called_off() -> None:
    async with on_stage(Provider(always=refusal(500))) as stage:
        future = await stage.gateway.submit(a_request())
        await stage.settle()
        assert stage.gateway.cancel("r1")
        await stage.pass_time(60)

        assert future.cancelled()
        assert len(stage.provider.posts) == 1
        assert is_idle(stage)


async def test_cancelling_the_caller_calls_the_request_off() -> None:
    async with on_stage(Provider(always=never)) as stage:
        asking = asyncio.create_task(stage.gateway.ask(a_request()))
        await stage.settle()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await stage.settle()

        assert stage.provider.broken_off == 1


async def test_the_same_request_again_joins_the_one_under_way() -> None:
    async with on_stage(Provider()) as stage:
        one, other = await stage.gateway.submit_many([a_request(), a_request()])
        await stage.end(one, other)

        assert one.result() is other.result()
        assert len(stage.provider.posts) == 1


async def test_another_request_with_the_same_id_is_a_conflict() -> None:
    async with on_stage(Provider(always=never)) as stage:
        await stage.gateway.submit(a_request())
        with pytest.raises(RequestIdConflict):
            await stage.gateway.submit(a_request(messages=[{"role": "user", "content": "something else"}]))


async def test_one_of_two_callers_may_leave() -> None:
    async with on_stage(Provider(refusal(500))) as stage:
        one, other = await stage.gateway.submit_many([a_request(), a_request()])
        await stage.settle()
        one.cancel()

        (ended,) = await stage.end(other)
        assert isinstance(ended, LLMResponse)


async def test_a_call_ends_when_its_attempt_is_over() -> None:
    async with on_stage(Provider(always=never), attempt_timeout=20, policy=0) as stage:
        future = await stage.gateway.submit(a_request())
        await stage.pass_time(19.9)
        assert not future.done()
        await stage.pass_time(0.1)

        error = future.exception()
        assert isinstance(error, RetriesExhausted)
        assert isinstance(error.__cause__, AttemptTimeout)
        assert error.possibly_executed
        assert stage.provider.broken_off == 1


async def test_a_deadline_ends_a_request_in_flight_and_nothing_is_sent_later() -> None:
    async with on_stage(Provider(always=never)) as stage:
        future = await stage.gateway.submit(a_request(deadline=5))
        await stage.pass_time(5)

        error = future.exception()
        assert isinstance(error, DeadlineExceeded)
        assert error.possibly_executed
        assert stage.provider.broken_off == 1
        assert stage.dlq.last.reason is Reason.DEADLINE
        await stage.pass_time(600)
        assert len(stage.provider.posts) == 1


async def test_a_deadline_ends_a_request_in_the_queue() -> None:
    async with on_stage(Provider(always=never), concurrency=1) as stage:
        await stage.gateway.submit(a_request("r1"))
        future = await stage.gateway.submit(a_request("r2", deadline=5))
        await stage.pass_time(5)

        error = future.exception()
        assert isinstance(error, DeadlineExceeded)
        assert not error.possibly_executed
        assert (error.attempts, len(stage.provider.posts)) == (0, 1)


async def test_a_full_queue_makes_callers_wait_or_tells_them() -> None:
    async with on_stage(Provider(always=never), queue_size=2) as stage:
        first, _ = await stage.gateway.submit_many([a_request("r1"), a_request("r2")])
        with pytest.raises(GatewayBusy):
            await stage.gateway.submit(a_request("r3"), wait=False)
        waiting = asyncio.create_task(stage.gateway.submit(a_request("r3")))
        await stage.settle()
        assert not waiting.done()

        first.cancel()
        await stage.settle()
        assert waiting.done()


async def test_of_two_streams_with_one_id_that_wait_for_room_the_second_is_refused() -> None:
    async with on_stage(Provider(always=never), queue_size=1) as stage:
        first = await stage.gateway.submit(a_request("r1"))

        async def heard() -> list[str]:
            async with stage.gateway.stream(a_request("r2")) as stream:
                return [delta.text async for delta in stream]

        one, other = asyncio.create_task(heard()), asyncio.create_task(heard())
        await stage.settle()
        first.cancel()
        await stage.settle()
        stage.gateway._lines["fast"].room.release()  # noqa: SLF001 - room for both
        await stage.settle()

        assert isinstance(other.exception(), RequestIdConflict)
        assert not one.done()
        one.cancel()
        await stage.settle()


async def test_who_waits_for_room_has_a_deadline_too() -> None:
    async with on_stage(Provider(always=never), queue_size=1) as stage:
        await stage.gateway.submit(a_request("r1"))
        waiting = asyncio.create_task(stage.gateway.submit(a_request("r2", deadline=3)))
        await stage.pass_time(3)
        with pytest.raises(DeadlineExceeded):
            await waiting


async def test_nothing_is_pending_after_close() -> None:
    async with on_stage(Provider(refusal(500), always=never), concurrency=2, queue_size=50) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(50)])
        late = asyncio.create_task(stage.gateway.submit(a_request("late")))
        await stage.settle()
        await stage.gateway.aclose()

        assert all(future.done() for future in futures)
        assert kinds([future.exception() for future in futures]) == ["GatewayClosed"] * 50
        with pytest.raises(GatewayClosed):
            await late
        with pytest.raises(GatewayClosed):
            await stage.gateway.submit(a_request("later"))
        await stage.gateway.aclose()


async def test_who_is_cancelled_while_closing_leaves_nothing_pending() -> None:
    class Hanging(RecordingDeadLetterQueue):
        async def send(self, letter: object) -> None:
            await asyncio.Event().wait()

    async with on_stage(Provider(refusal(500), always=never), policy=0, dlq=Hanging()) as stage:
        futures = await stage.gateway.submit_many([a_request("r1"), a_request("r2")])
        await stage.settle()
        closing = asyncio.create_task(stage.gateway.aclose())
        await stage.settle()
        closing.cancel()
        await stage.settle()

        assert closing.cancelled()
        assert kinds([future.exception() for future in futures]) == ["GatewayClosed"] * 2


async def test_letters_under_way_are_written_before_the_gateway_closes() -> None:
    class Slow(RecordingDeadLetterQueue):
        async def send(self, letter: object) -> None:
            await asyncio.sleep(0.01)
            await super().send(letter)  # type: ignore[arg-type]

    async with on_stage(Provider(always=refusal(500)), policy=0, dlq=Slow()) as stage:
        future = await stage.gateway.submit(a_request())
        await stage.settle()
        await stage.gateway.aclose()

        assert isinstance(future.exception(), RetriesExhausted)
        assert stage.dlq.count == 1


async def test_a_letter_that_is_refused_leaves_the_error_and_says_why() -> None:
    async with on_stage(Provider(always=refusal(500)), policy=0, dlq=RecordingDeadLetterQueue(capacity=0)) as stage:
        error = await stage.error(a_request())

        assert isinstance(error, RetriesExhausted)
        assert error.letter_id is None
        assert "full" in error.refused
        assert stage.gateway.stats()["fast"].letters_refused == 1


async def test_metadata_that_json_cannot_say_is_refused_before_anything_is_sent() -> None:
    async with on_stage(Provider()) as stage:
        with pytest.raises(RequestRejected, match="JSON"):
            await stage.gateway.submit(a_request(metadata={"user": object()}))

        assert stage.provider.posts == []


async def test_a_request_that_can_no_longer_be_said_in_a_letter_ends_all_the_same() -> None:
    history = [{"role": "user", "content": "hello"}]
    async with on_stage(Provider(always=refusal(500)), policy=0) as stage:
        future = await stage.gateway.submit(a_request(messages=history))
        history[0]["content"] = object()  # type: ignore[assignment]
        await stage.settle()
        error = future.exception()

        assert isinstance(error, RetriesExhausted)
        assert (error.letter_id, stage.dlq.count) == (None, 0)
        assert "JSON" in error.refused
        assert is_idle(stage)


@pytest.mark.parametrize("moments", range(8))
async def test_who_leaves_in_the_moment_in_which_there_is_room_leaves_it_to_others(moments: int) -> None:
    healed = asyncio.Event()

    async def slow(_: Post) -> Reply:
        await healed.wait()
        return answer()

    async with on_stage(Provider(always=slow), queue_size=1) as stage:
        await stage.gateway.submit(a_request("r1"))
        submitting = asyncio.create_task(stage.gateway.submit(a_request("r2")))
        await stage.settle()
        healed.set()
        for _ in range(moments):
            await asyncio.sleep(0)
        submitting.cancel()
        await stage.settle()

        third = await stage.gateway.submit(a_request("r3"), wait=False)
        await stage.settle()

        assert third.result().request_id == "r3"


async def test_who_is_cancelled_while_submitting_many_leaves_none_behind() -> None:
    async with on_stage(Provider(always=never), queue_size=2) as stage:
        submitting = asyncio.create_task(stage.gateway.submit_many([a_request(f"r{n}") for n in range(3)]))
        await stage.settle()
        submitting.cancel()
        await stage.settle()

        assert submitting.cancelled()
        assert is_idle(stage)


async def test_a_dead_letter_queue_that_hangs_is_not_waited_for_without_end() -> None:
    class Hanging(RecordingDeadLetterQueue):
        async def send(self, letter: object) -> None:
            await asyncio.Event().wait()

    async with on_stage(Provider(always=refusal(500)), policy=0, dlq=Hanging()) as stage:
        error = await stage.error(a_request())

        assert (error.letter_id, error.refused) == (None, "it took too long")


@pytest.mark.parametrize("policy", [None, 0])
async def test_without_a_dead_letter_queue_a_warning_says_so(
    policy: RetrySpec, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with Gateway({"fast": a_model()}, policy=policy):
            pass

    assert "no dead letter queue" in caplog.text


async def test_a_model_that_is_not_known_is_refused() -> None:
    async with on_stage(Provider()) as stage:
        with pytest.raises(RequestRejected, match="expected one of fast"):
            await stage.gateway.submit(a_request(model="slow"))


async def test_what_is_refused_among_many_is_in_its_own_future() -> None:
    async with on_stage(Provider()) as stage:
        unsayable = a_request("r2", messages=[{"role": "user", "content": object()}])
        futures = await stage.gateway.submit_many([a_request("r1"), unsayable, a_request("r3", model="slow")])

        assert kinds(await stage.end(*futures)) == ["LLMResponse", "RequestRejected", "RequestRejected"]


async def test_nothing_of_a_request_stays_behind() -> None:
    async with on_stage(Provider(refusal(409), refusal(400))) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(20)])
        await stage.end(*futures)
        await stage.pass_time(2)  # after which the counts were told
        gc.collect()

        assert [one for one in gc.get_objects() if isinstance(one, Ticket | Call)] == []
        assert stage.gateway._router.pending() == []  # noqa: SLF001
        await stage.pass_time(600)  # the longest that a request may take: then somebody looks, and finds none
        assert len(stage.gateway._around.alarms) == 0  # noqa: SLF001


async def test_drain_waits_for_everything() -> None:
    async with on_stage(Provider(refusal(500))) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(5)])
        draining = asyncio.create_task(stage.gateway.drain())
        await stage.end(*futures)
        await draining

        assert kinds([future.result() for future in futures]) == ["LLMResponse"] * 5


async def test_a_gateway_is_opened_once() -> None:
    gateway = Gateway({"fast": a_model()})
    with pytest.raises(GatewayClosed):
        await gateway.submit(a_request())
    async with gateway:
        pass
    with pytest.raises(GatewayClosed):
        async with gateway:
            pass


async def test_ten_thousand_random_moments_of_leaving_lose_no_future(caplog: pytest.LogCaptureFixture) -> None:
    random = Random(11)

    replies = [answer(), answer(), refusal(409), refusal(400), refusal(500)]

    async def moody(post: Post) -> Reply:
        for _ in range(random.randrange(4)):
            await asyncio.sleep(0)
        if random.random() < 0.1:
            raise OSError("wire")
        return random.choice(replies)

    caplog.set_level(logging.CRITICAL, "redrive.gateway.calls")
    caplog.set_level(logging.WARNING, "asyncio")
    async with on_stage(Provider(always=moody), queue_size=500, policy=[0, 1, 1], deadline=30) as stage:
        ended = left = called = 0
        for round_number in range(25):
            requests = [a_request(f"{round_number}-{n}", agent_id=f"a{n % 7}") for n in range(500)]
            futures = await stage.gateway.submit_many(requests)
            for future in random.sample(futures, 400):
                if random.random() < 0.3:
                    await asyncio.sleep(0)
                if random.random() < 0.02:
                    stage.clock.advance(random.random())
                future.cancel()
                called += 1
            results = await stage.end(*futures, step=1)
            ended += len(results)
            left += sum(isinstance(one, asyncio.CancelledError) for one in results)
            assert {type(one) for one in results if not isinstance(one, GatewayError)} <= {
                LLMResponse,
                asyncio.CancelledError,
            }
            await stage.settle()
            assert is_idle(stage)
        assert (ended, called) == (12_500, 10_000)
        assert left > 1000
        assert stage.gateway._lines["fast"].limits.slots.in_flight == 0  # noqa: SLF001
        assert stage.gateway._lines["fast"].tickets == {}  # noqa: SLF001
    assert [record for record in caplog.records if record.levelno >= logging.ERROR and record.name == "asyncio"] == []
