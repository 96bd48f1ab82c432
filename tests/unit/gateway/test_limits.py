import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.errors import RateLimited, RequestRejected
from redrive.core.event import ConsumerPaused, ConsumerResumed
from redrive.gateway import Post, Reply
from redrive.gateway.allowance import Allowance
from redrive.gateway.concurrency import FIRST, Concurrency
from redrive.gateway.windows import MinuteWindow
from tests.unit.gateway.stage import Provider, a_request, answer, kinds, on_stage, refusal

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def used_up(slots: Concurrency, answers: int) -> None:
    for _ in range(answers):
        slots.in_flight = slots.limit - 1  # as if this one had been the last of a full house
        slots.succeeded()


def test_the_limit_grows_with_success_up_to_the_most() -> None:
    slots = Concurrency(64)
    assert slots.limit == FIRST

    used_up(slots, 100)

    assert slots.limit == 64


def test_the_limit_does_not_grow_while_nobody_needs_it() -> None:
    slots = Concurrency(64)
    for _ in range(100):
        slots.succeeded()

    assert slots.limit == FIRST


def test_overload_halves_the_limit_once_for_all_in_flight_together() -> None:
    slots = Concurrency(64)
    used_up(slots, 100)
    for _ in range(30):
        slots.overloaded(started_at=NOW, now=NOW + SECOND)
    assert slots.limit == 32

    slots.overloaded(started_at=NOW + 2 * SECOND, now=NOW + 3 * SECOND)
    assert slots.limit == 16

    used_up(slots, 60)
    assert slots.limit == 16
    used_up(slots, 10)
    assert slots.limit == 17  # beyond the threshold: one in four round trips


def test_a_closed_gate_keeps_the_later_end_and_opens_with_one_slot() -> None:
    slots = Concurrency(64)
    slots.close(NOW + 9 * SECOND, started_at=NOW, now=NOW)
    slots.close(NOW + 5 * SECOND, started_at=NOW, now=NOW)

    assert slots.closed(NOW + 8 * SECOND) == NOW + 9 * SECOND
    assert slots.closed(NOW + 9 * SECOND) is None
    assert slots.limit == 1


def rounds(slots: Concurrency, count: int) -> list[int]:
    """How many calls are in flight in each of so many round trips, if all who can are sent, and all are answered."""
    limits = []
    for _ in range(count):
        limits.append(slots.limit)
        used_up(slots, slots.limit)
    return limits


def test_a_gate_that_was_closed_twice_opens_as_fast_as_after_once() -> None:
    slots = Concurrency(64)
    used_up(slots, 100)
    slots.close(NOW + SECOND, started_at=NOW, now=NOW)
    slots.close(NOW + 3 * SECOND, started_at=NOW + SECOND, now=NOW + 2 * SECOND)

    assert rounds(slots, 5) == [1, 2, 4, 8, 16]


def test_after_an_outage_the_limit_doubles_as_at_first() -> None:
    slots = Concurrency(64)
    for second in range(10):
        slots.overloaded(started_at=NOW + second * SECOND, now=NOW + second * SECOND)
    assert slots.limit == 1

    slots.restart()
    assert rounds(slots, 4) == [1, 2, 4, 8]


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 40)), max_size=60))
def test_no_minute_has_more_than_the_limit(moves: list[tuple[float, int]]) -> None:
    window, now, sent = MinuteWindow(100), NOW, []
    for pause, amount in moves:
        now += timedelta(seconds=pause)
        if window.room_at(amount, now=now) is None:
            window.reserve(amount, now=now)
            sent.append((now, amount))
    for start, _ in sent:
        within = sum(amount for at, amount in sent if start <= at < start + timedelta(seconds=60))
        assert within <= 100


def test_what_was_reserved_is_corrected() -> None:
    window = MinuteWindow(100)
    taken = window.reserve(90, now=NOW)
    assert window.room_at(20, now=NOW) == NOW + timedelta(seconds=61)

    window.correct(taken, 30 - 90)
    assert window.room_at(20, now=NOW) is None
    assert window.used == 30

    assert window.room_at(100, now=NOW + timedelta(seconds=61)) is None
    window.correct(taken, 1000)  # too late to matter
    assert window.used == 0


def test_retries_are_allowed_ten_a_minute_and_one_for_five_answers() -> None:
    allowance = Allowance()
    assert [allowance.take(NOW) for _ in range(10)] == [None] * 10
    again_at = allowance.take(NOW)
    assert again_at == NOW + timedelta(seconds=6)
    assert allowance.take(again_at) is None

    for _ in range(50):
        allowance.succeeded(again_at)
    assert [allowance.take(again_at) for _ in range(10)] == [None] * 10
    assert allowance.take(again_at) is not None

    allowance.refill()
    assert allowance.take(again_at) is None


def taken(allowance: Allowance, now: datetime) -> int:
    """How many retries it has at once."""
    count = 0
    while allowance.take(now) is None:
        count += 1
    return count


def test_an_hour_of_answers_allows_as_many_retries_as_its_last_minute() -> None:
    allowance = Allowance()
    for second in range(3600):
        for _ in range(10):
            allowance.succeeded(NOW + second * SECOND)

    assert 0.95 <= taken(allowance, NOW + 3600 * SECOND) / (10 + 0.2 * 600) <= 1.05


def test_what_answers_have_earned_fades_when_no_more_come() -> None:
    allowance = Allowance()
    for _ in range(5000):
        allowance.succeeded(NOW)

    assert taken(allowance, NOW + 600 * SECOND) == 10


@given(st.lists(st.floats(0, 20), max_size=60), st.integers(0, 7))
def test_when_to_ask_for_a_retry_again_is_never_now(pauses: list[float], answers: int) -> None:
    allowance, now = Allowance(), NOW
    for pause in pauses:
        now += timedelta(seconds=pause)
        for _ in range(answers):
            allowance.succeeded(now)
        again_at = allowance.take(now)
        assert again_at is None or again_at > now


async def test_retries_of_a_worker_wait_for_the_allowance_as_all_others_do() -> None:
    async with on_stage(Provider()) as stage:
        stage.gateway._lines["fast"].limits.allowance.succeeded = lambda now: None  # type: ignore[method-assign]  # noqa: SLF001
        retries = [asyncio.create_task(stage.gateway.attempt(a_request(str(n)), failures=1)) for n in range(12)]
        await stage.settle()
        assert len(stage.provider.posts) == 10
        assert stage.gateway.stats()["fast"].waiting == 2

        await stage.gateway.attempt(a_request("first"))
        await stage.gateway.attempt(a_request("limited"), failures=1, limited=True)
        assert len(stage.provider.posts) == 12
        stage.gateway.withdraw("11")
        await stage.pass_time(6)

        assert kinds(await asyncio.gather(*retries, return_exceptions=True)) == ["LLMResponse"] * 11 + ["GatewayClosed"]
        assert len(stage.provider.posts) == 13


async def test_calls_in_flight_stay_below_the_limit() -> None:
    running, most = 0, 0

    async def slow(_: Post) -> Reply:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running -= 1
        return answer()

    async with on_stage(Provider(always=slow), concurrency=20) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(300)])
        assert kinds(await stage.end(*futures)) == ["LLMResponse"] * 300

    assert most == 20


async def test_a_429_closes_the_gate_for_everyone() -> None:
    provider = Provider(refusal(429, headers={"retry-after": "10"}))
    async with on_stage(provider, concurrency=1) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(5)])
        await stage.pass_time(9.9)
        assert len(provider.posts) == 1

        await stage.end(*futures)
        assert [future.result().attempts for future in futures] == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("headers", [{}, {"retry-after": "soon"}, {"retry-after": "0"}])
async def test_a_429_that_does_not_say_for_how_long_closes_the_gate_for_a_second(headers: dict[str, str]) -> None:
    provider = Provider(refusal(429, headers=headers), always=answer())
    async with on_stage(provider, policy=[0]) as stage:
        await stage.gateway.submit(a_request("first"))
        await stage.settle()
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(5)])
        await stage.pass_time(0.9)
        assert len(provider.posts) == 1
        assert stage.gateway.stats()["fast"].limit == 1

        await stage.pass_time(0.1)
        assert [future.result().attempts for future in futures] == [1] * 5


async def test_a_long_pause_ends_those_at_once_that_cannot_wait_for_it() -> None:
    provider = Provider(refusal(429, headers={"retry-after": "300"}))
    async with on_stage(provider, concurrency=1, deadline="1h") as stage:
        patient = await stage.gateway.submit(a_request("patient"))
        hasty = await stage.gateway.submit(a_request("hasty", deadline=60))
        await stage.settle()
        later = await stage.gateway.submit(a_request("later", deadline=60))
        await stage.settle()

        for error in (hasty.exception(), later.exception()):
            assert isinstance(error, RateLimited)
            assert error.until is not None
            assert error.letter_id is not None
        assert len(provider.posts) == 1
        await stage.end(patient)
        assert patient.result().attempts == 2


async def test_what_a_long_pause_holds_in_the_queue_is_postponed_as_well() -> None:
    busy = Reply(429, {"retry-after": "300"}, b"{}")
    async with on_stage(Provider(busy), concurrency=1) as stage:
        await stage.gateway.submit_many([a_request("r1"), a_request("r2"), a_request("r3")])
        await stage.settle()

        stats = stage.gateway.stats()["fast"]
        assert (stats.waiting, stats.queued, stats.postponed) == (1, 2, 3)


async def test_requests_per_minute_hold_in_every_minute_and_are_used() -> None:
    sent: list[datetime] = []
    async with on_stage(Provider(), requests_per_minute=60, deadline="1h") as stage:

        def stamped(_: Post) -> Reply:
            sent.append(stage.clock.now())
            return answer()

        stage.provider._always = stamped  # noqa: SLF001
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(240)])
        await stage.end(*futures)

    for start in sent:
        assert sum(start <= at < start + timedelta(seconds=60) for at in sent) <= 60
    assert (sent[-1] - sent[0]).total_seconds() <= 3 * 61


async def test_tokens_are_reserved_before_sending_and_corrected_by_usage() -> None:
    async with on_stage(Provider(always=answer(tokens=(40, 60))), tokens_per_minute=1000) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n), est_tokens=500) for n in range(10)])
        await stage.settle()  # two fit at a time; then each has cost 100

        assert sum(future.done() for future in futures) == 6
        await stage.end(*futures)


async def test_a_request_that_fits_in_no_minute_is_refused_when_it_is_made() -> None:
    async with on_stage(Provider(), tokens_per_minute=1000) as stage:
        with pytest.raises(RequestRejected, match="est_tokens"):
            await stage.gateway.submit(a_request(est_tokens=1001))


async def test_an_outage_costs_time_and_no_request() -> None:
    broken = True
    sent: Counter[int] = Counter()

    async with on_stage(Provider(), deadline="1h") as stage:

        def provider(_: Post) -> Reply:
            sent[int(stage.clock.now().timestamp())] += 1
            return refusal(503) if broken else answer()

        stage.provider._always = provider  # noqa: SLF001
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(100)])
        await stage.pass_time(60)
        assert stage.gateway.stats()["fast"].breaker is not None
        assert sum(sent.values()) <= 100
        assert max([*sent.values()][-20:]) == 1  # one probe at a time

        broken = False
        await stage.pass_time(2)
        assert stage.gateway.stats()["fast"].breaker is None
        assert kinds(await stage.end(*futures)) == ["LLMResponse"] * 100

        moved = [type(event) for event in stage.listener.events if isinstance(event, ConsumerPaused | ConsumerResumed)]
        assert moved == [ConsumerPaused, ConsumerResumed]
        assert stage.dlq.count == 0


async def never(_: Post) -> Reply:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_provider_that_outlives_every_deadline_opens_the_breaker() -> None:
    async with on_stage(Provider(always=never), attempt_timeout="2m") as stage:
        stage.gateway._lines["fast"].limits.slots._limit = 32  # noqa: SLF001 - as after a calm day
        futures = await stage.gateway.submit_many([a_request(str(n), deadline=5) for n in range(30)])
        await stage.pass_time(5)

        assert kinds([future.exception() for future in futures]) == ["DeadlineExceeded"] * 30
        assert stage.gateway.stats()["fast"].breaker is not None
        assert stage.gateway.stats()["fast"].limit == 16
        assert [type(event) for event in stage.listener.events if isinstance(event, ConsumerPaused)] == [ConsumerPaused]

        stage.provider._always = answer()  # noqa: SLF001
        assert (await stage.ask(a_request("later"))).text == "hello"
        assert stage.gateway.stats()["fast"].breaker is None


async def test_deadlines_that_pass_while_others_are_answered_open_no_breaker() -> None:
    async with on_stage(Provider(always=never), concurrency=2) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n), deadline=5) for n in range(30)])
        await stage.pass_time(4)
        futures[0].cancel()
        stage.provider._said = [answer()]  # noqa: SLF001
        await stage.pass_time(1)

        assert futures[1].done()
        assert stage.gateway.stats()["fast"].answered == 1
        assert stage.gateway.stats()["fast"].breaker is None


async def test_a_request_of_its_own_fault_opens_no_breaker() -> None:
    async with on_stage(Provider(always=refusal(400))) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(100)])
        assert kinds(await stage.end(*futures)) == ["RequestRejected"] * 100
        assert stage.gateway.stats()["fast"].breaker is None


async def test_retries_do_not_become_the_load() -> None:
    """Half of the calls fail, too few for the breaker at a time: retries are held back, and all are answered."""
    calls = 0

    def sometimes(_: Post) -> Reply:
        nonlocal calls
        calls += 1
        return refusal(500) if calls % 5 == 0 and calls < 400 else answer()

    async with on_stage(Provider(always=sometimes), deadline="1h", policy=10) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(300)])
        assert kinds(await stage.end(*futures)) == ["LLMResponse"] * 300

    assert calls - 300 <= 300 * 0.25 + 10
