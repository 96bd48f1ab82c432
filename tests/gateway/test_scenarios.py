"""Scenarios 1 to 11 and 14 to 16 of the gateway, each against a real server. Durable ones have no place in memory."""

import asyncio
import json
from collections import Counter
from datetime import datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path

import pytest

from redrive.clock import SystemClock
from redrive.core.errors import (
    AttemptTimeout,
    BadAnswer,
    DeadlineExceeded,
    GatewayClosed,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    RetriesExhausted,
    TransportFault,
)
from redrive.core.reason import Reason
from redrive.gateway import Gateway, LLMResponse, ModelConfig
from tests.gateway.fault_server import (
    PATIENCE,
    Act,
    FaultServer,
    Visit,
    dribble,
    flood,
    good,
    http,
    refuse,
    reset,
    say,
    write,
)
from tests.gateway.theatre import a_request, some, theatre
from tests.unit.gateway.stage import kinds, rows

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


async def test_1_a_storm_of_429_is_waited_out_and_all_are_answered() -> None:
    async with theatre(deadline="1h") as play:
        opened = play.clock.now()
        admitted: list[datetime] = []

        def storm(visit: Visit) -> Act:
            recent = [at for at in admitted if seconds(at, visit.at) < 1]
            if seconds(opened, visit.at) < 10 or len(recent) >= 20:
                return refuse(429, "rate_limit_exceeded", {"Retry-After": "2"})
            admitted.append(visit.at)
            return say()

        play.server.rule = storm
        futures = await play.gateway.submit_many(some(200))
        ended = await play.end(*futures)

        assert kinds(ended) == ["LLMResponse"] * 200
        assert len(play.server.visits) <= 1.3 * 200
        by_name: dict[str, list[datetime]] = {}
        for visit in play.server.visits:
            by_name.setdefault(visit.said, []).append(visit.at)
        assert all(seconds(a, b) >= 2 for times in by_name.values() for a, b in pairwise(times))
        times = [visit.at for visit in play.server.visits]
        assert max(sum(0 <= seconds(one, other) < 0.1 for other in times) for one in times) <= 0.2 * 200


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "2"}, 2, 3),
        ({"Retry-After": "1.5"}, 1.5, 2.5),
        ({"Retry-After-Ms": "1500"}, 1.5, 2.5),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5, 2.5),
        ({"Retry-After": "DATE+3"}, 3, 4),
        ({"Retry-After": "DATE-9"}, 0, 1),
        ({"Retry-After": "0"}, 0, 1),
        ({"Retry-After": "-5"}, 0, 1),
        ({"Retry-After": "soon"}, 0, 1),
        ({"Retry-After": "NaN"}, 0, 1),
        ({"Retry-After": "61"}, 61, 77),
        ({"Retry-After": "121"}, 121, 152),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m3s"}, 63, 79),
    ],
)
async def test_2_a_told_delay_is_kept_in_every_form(headers: dict[str, str], least: float, most: float) -> None:
    async with theatre() as play:
        start = play.clock.now()
        told = {
            name: format_datetime(start + timedelta(seconds=int(value[4:])), usegmt=True)
            if value.startswith("DATE")
            else value
            for name, value in headers.items()
        }
        play.server.plan(refuse(429, "rate_limit_exceeded", told))
        response = await play.ask(a_request())

        assert response.attempts == 2
        assert least <= seconds(start, play.server.visits[1].at) <= most


@pytest.mark.parametrize("told", ["3600", "9" * 30])  # 61 and 121 are postponed: the deadline allows that
async def test_2_a_delay_beyond_the_deadline_is_told_at_once(told: str) -> None:
    async with theatre() as play:
        play.server.plan(refuse(429, "rate_limit_exceeded", {"Retry-After": told}))
        error = await play.error(a_request())

        assert isinstance(error, RateLimited)
        assert error.until is not None
        assert len(play.server.visits) == 1


@pytest.mark.parametrize("seed", range(3))
async def test_2_of_a_hundred_who_are_told_the_same_at_most_a_quarter_comes_back_in_100_ms(seed: int) -> None:
    async with theatre(concurrency=100, seed=seed) as play:
        play.gateway._lines["fast"].limits.slots._limit = 100  # noqa: SLF001 - all at once, as after a calm day
        told: set[str] = set()

        def once(visit: Visit) -> Act:
            if visit.said in told:
                return say()
            told.add(visit.said)
            return refuse(429, "rate_limit_exceeded", {"Retry-After": "2"})

        play.server.rule = once
        start = play.clock.now()
        ended = await play.end(*await play.gateway.submit_many(some(100)))

        assert kinds(ended) == ["LLMResponse"] * 100
        assert len(play.server.visits) == 200
        again = sorted(seconds(start, visit.at) for visit in play.server.visits[100:])
        assert again[0] >= 2
        assert max(sum(one <= other < one + 0.1 for other in again) for one in again) <= 25


async def test_2_a_pause_of_one_model_holds_no_other_one() -> None:
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE):
        models = {name: ModelConfig(base_url=server.url, model_name=name) for name in ("busy", "free")}
        async with Gateway(models, policy=0) as gateway:
            server.plan(refuse(429, "rate_limit_exceeded", {"Retry-After": "3600"}))
            with pytest.raises((RateLimited, RetriesExhausted)):
                await gateway.ask(a_request("r1", model="busy"))

            assert (await gateway.ask(a_request("r2", model="free"))).text == "hello"
            assert gateway.stats()["busy"].closed_until is not None
            assert gateway.stats()["free"].closed_until is None


async def test_2_callers_who_are_told_the_same_do_not_come_back_together() -> None:
    async with theatre(concurrency=100) as play:
        told: set[str] = set()

        def once(visit: Visit) -> Act:
            if visit.said in told:
                return say()
            told.add(visit.said)
            return refuse(429, "rate_limit_exceeded", {"Retry-After": "2"})

        play.server.rule = once
        start = play.clock.now()
        ended = await play.end(*await play.gateway.submit_many(some(8)))

        again = [seconds(start, visit.at) for visit in play.server.visits[8:]]
        assert kinds(ended) == ["LLMResponse"] * 8
        assert len(again) == len({*again}) == 8
        assert min(again) >= 2


async def test_3_a_lasting_429_is_four_attempts_and_a_letter() -> None:
    async with theatre() as play:
        play.server.rule = lambda _: refuse(429, "rate_limit_exceeded")
        error = await play.error(a_request())

        assert isinstance(error, RetriesExhausted)
        assert isinstance(error.__cause__, RateLimited)
        assert len(play.server.visits) == 4
        assert play.dlq.last.reason is Reason.ATTEMPTS_EXHAUSTED


async def test_3_quota_is_one_attempt_and_opens_the_breaker() -> None:
    async with theatre() as play:
        play.server.rule = lambda _: refuse(429, "insufficient_quota")
        error = await play.error(a_request())

        assert isinstance(error, QuotaExhausted)
        assert len(play.server.visits) == 1
        assert play.gateway.stats()["fast"].breaker is not None


async def test_4_thirty_seconds_of_503_cost_time_and_few_retries() -> None:
    async with theatre(deadline="1h") as play:
        opened = play.clock.now()
        healed = opened + timedelta(seconds=30)
        play.server.rule = lambda visit: say(200 if visit.at >= healed else 503)
        futures = []
        for second in range(40):
            futures += [*await play.gateway.submit_many([a_request(f"s{second}-{n}") for n in range(20)])]
            await play.pass_time(1)
            if second == 15:
                assert play.gateway.stats()["fast"].breaker is not None
        ended = await play.end(*futures)

        assert kinds(ended) == ["LLMResponse"] * 800
        assert play.gateway.stats()["fast"].breaker is None
        assert len(play.server.visits) <= 1.2 * 800
        first_good = min(visit.at for visit in play.server.visits if visit.at >= healed)
        assert seconds(healed, first_good) <= 2
        late = Counter(int(visit.at.timestamp()) for visit in play.server.visits if opened < visit.at < healed)
        assert max([*late.values()][5:]) <= 2  # probes, one at a time


@pytest.mark.parametrize("status", [500, 529, 408, 409])
async def test_5_a_passing_fault_is_two_attempts(status: int, tmp_path: Path) -> None:
    async with theatre(log_dir=tmp_path) as play:
        play.server.plan(say(status))
        assert (await play.ask(a_request())).attempts == 2
    assert len(rows(tmp_path, "retries")) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_5_a_rejected_request_is_one_attempt(status: int, tmp_path: Path) -> None:
    async with theatre(log_dir=tmp_path) as play:
        play.server.plan(say(status))
        assert isinstance(await play.error(a_request()), RequestRejected)
        assert len(play.server.visits) == 1
    assert rows(tmp_path, "retries") == []


async def test_5_a_provider_that_wants_no_retry_gets_none() -> None:
    async with theatre() as play:
        play.server.plan(say(500, headers={"x-should-retry": "false"}))
        assert isinstance(await play.error(a_request()), RequestRejected)
        assert len(play.server.visits) == 1


async def _reset(visit: Visit) -> None:
    reset(visit)


@pytest.mark.parametrize(
    "fault",
    [
        write(b""),
        _reset,
        write(HEAD + b"Content-Length: 500\r\n\r\n", then="reset"),
        write(HEAD + b"Content-Length: 500\r\n\r\n" + b'{"choices": [', then="reset"),
        write(HEAD + b"Content-Length: 500\r\n\r\n" + b'{"choices": ['),
        write(HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"cho'),
        write(b"HTTP/1.1 what\r\n\r\n"),
    ],
    ids=["closed", "reset", "after headers", "mid body", "short body", "cut chunk", "no HTTP"],
)
async def test_6_a_broken_connection_is_retried_on_another_one(fault: Act) -> None:
    async with theatre() as play:
        play.server.plan(fault)
        response = await play.ask(a_request())

        assert response.attempts == 2
        assert response.possibly_executed
        assert len({visit.connection for visit in play.server.visits}) == 2


async def test_6_a_refused_connection_was_surely_not_executed() -> None:
    async with theatre(policy=1) as play:
        assert play.server._server is not None  # noqa: SLF001
        play.server._server.close()  # noqa: SLF001
        error = await play.error(a_request())

        assert isinstance(error, RetriesExhausted)
        assert isinstance(error.__cause__, TransportFault)
        assert not error.possibly_executed


async def test_6_a_connection_that_was_closed_between_calls_costs_at_most_one_attempt() -> None:
    async with theatre() as play:
        await play.ask(a_request("r1"))
        play.server.visits[0].writer.close()
        response = await play.ask(a_request("r2"))

        assert response.attempts <= 2


@pytest.mark.parametrize(
    "fault",
    [
        write(b"", then="hang"),
        write(b"HTTP/1.1 200 OK\r\nContent-", then="hang"),
        write(HEAD + b"Content-Length: 500\r\n\r\n{", then="hang"),
        dribble(HEAD + b"Content-Length: 5000000\r\n\r\n{"),
        dribble(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n5000000\r\n"),
    ],
    ids=["silent", "slow headers", "slow body", "byte by byte", "byte by byte in a chunk"],
)
async def test_7_an_attempt_ends_when_its_time_is_over_whatever_it_is_doing(fault: Act) -> None:
    async with theatre(attempt_timeout=20, policy=0) as play:
        play.server.rule = lambda _: fault
        future = await play.gateway.submit(a_request())
        await play.server.arrived(1)
        play.clock.advance(20)
        await play.server.gone(1)
        await play.settle()

        error = future.exception()
        assert isinstance(error, RetriesExhausted)
        assert isinstance(error.__cause__, AttemptTimeout)
        assert error.possibly_executed


@pytest.mark.parametrize(
    "fault",
    [
        flood(HEAD + b"Content-Length: 104857600\r\n\r\n", b"x" * 65536),
        flood(HEAD + b"\r\n", b"x" * 65536),
        flood(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    ],
    ids=["100 MiB", "until closed", "chunked"],
)
async def test_7_a_body_without_end_is_no_answer_and_is_left(fault: Act) -> None:
    async with theatre(max_answer_bytes=300_000, policy=0) as play:
        play.server.rule = lambda _: fault
        error = await play.error(a_request())

        assert isinstance(error.__cause__, BadAnswer)
        assert "300000" in str(error.__cause__)


@pytest.mark.parametrize(
    ("fault", "kept"),
    [
        (say(body=good()[:-30]), good()[:-30].decode()),
        (say(body=b""), None),
        (say(body=b"<html>", headers={"Content-Type": "text/html"}), "<html>"),
        (say(body=b'{"error": {"type": "overloaded_error"}}'), '{"error": {"type": "overloaded_error"}}'),
        (say(body=b'{"id": "c1"}'), '{"id": "c1"}'),
        (say(headers={"Content-Type": "text/plain"}), good().decode()),
        (say(headers={"Content-Encoding": "gzip"}), None),
    ],
    ids=["cut", "empty", "HTML", "error in a success", "no choices", "another type", "no gzip"],
)
async def test_8_what_is_no_answer_is_retried_and_kept_in_the_letter(fault: Act, kept: str | None) -> None:
    async with theatre() as play:
        play.server.plan(fault)
        assert (await play.ask(a_request("r1"))).attempts == 2

        play.server.rule = lambda _: fault
        error = await play.error(a_request("r2"))
        assert isinstance(error.__cause__, BadAnswer)
        assert play.dlq.last.error_type == "redrive.BadAnswer"
        assert play.dlq.last.context.get("answer") == kept


def batch(*rows: object, status: int = 200) -> Act:
    return say(status, json.dumps({"results": rows}).encode())


def item(name: str, status: int = 200) -> dict[str, object]:
    body = json.loads(good()) if status == 200 else {"error": {"message": "no"}}
    return {"custom_id": name, "response": {"status_code": status, "body": body}}


async def test_9_of_a_batch_only_what_failed_is_sent_again() -> None:
    sent: Counter[str] = Counter()

    def all_good(visit: Visit) -> Act:
        return batch(*(item(one["custom_id"]) for one in visit.body["requests"]))

    async with theatre(batch_size=6, batch_path="/batch") as play:
        play.server.rule = all_good
        first = batch(item("r5"), item("r0"), item("r1", 500), item("r0"), item("r9"), item("r3"), status=207)
        play.server.plan(first, say(500))
        ended = await play.end(*await play.gateway.submit_many(some(6)))
        for visit in play.server.visits:
            sent.update(one["custom_id"] for one in visit.body["requests"])

        assert kinds(ended) == ["LLMResponse"] * 6
        assert {name for name, count in sent.items() if count == 1} >= {"r0", "r3", "r5"}
        assert all(sent[name] >= 2 for name in ("r1", "r2", "r4"))


async def test_10_callers_may_leave_at_any_point_and_the_server_sees_it() -> None:
    async with theatre(concurrency=8) as play:
        play.server.rule = lambda _: write(b"", then="hang")
        futures = await play.gateway.submit_many(some(1000))
        await play.server.arrived(8)
        for future in futures:
            future.cancel()
        await play.server.gone(8)
        await play.settle()

        stats = play.gateway.stats()["fast"]
        assert (stats.queued, stats.in_flight, stats.waiting, stats.cancelled) == (0, 0, 0, 1000)
        assert len(play.server.visits) == 8
        play.server.rule = lambda _: say()
        assert (await play.ask(a_request("after"))).text == "hello"


async def test_10_leaving_while_backing_off_or_after_the_answer_is_harmless() -> None:
    async with theatre() as play:
        play.server.plan(say(500), say())
        backing_off = await play.gateway.submit(a_request("r1"))
        await play.settle()
        answered = await play.gateway.submit(a_request("r2"))
        await play.settle()
        backing_off.cancel()

        assert answered.done()
        assert not answered.cancel()
        play.clock.advance(60)
        await play.settle()
        assert len(play.server.visits) == 2


async def test_11_a_deadline_holds_in_the_queue_in_flight_and_before_a_retry() -> None:
    async with theatre(concurrency=1, policy=[30]) as play:
        play.server.rule = lambda _: write(b"", then="hang")
        futures = await play.gateway.submit_many([a_request("r1", deadline=5), a_request("r2", deadline=5)])
        await play.server.arrived(1)
        play.clock.advance(5)
        await play.server.gone(1)
        await play.settle()
        errors = [future.exception() for future in futures]
        assert kinds(errors) == ["DeadlineExceeded"] * 2
        assert [error.possibly_executed for error in errors if isinstance(error, DeadlineExceeded)] == [True, False]

        play.server.rule = lambda _: say(500)
        assert isinstance(await play.error(a_request("r3", deadline=20)), DeadlineExceeded)
        play.clock.advance(600)
        await play.settle()
        assert len(play.server.visits) == 2


async def test_14_closing_with_a_full_queue_ends_every_future() -> None:
    async with theatre(concurrency=4, queue_size=100) as play:
        play.server.rule = lambda _: write(b"", then="hang")
        futures = await play.gateway.submit_many(some(100))
        await play.server.arrived(4)
        await play.gateway.aclose()
        await play.server.gone(4)

        errors = [future.exception() for future in futures]
        assert kinds(errors) == ["GatewayClosed"] * 100
        assert sum(error.possibly_executed for error in errors if isinstance(error, GatewayClosed)) == 4


async def test_14_a_call_whose_task_is_killed_is_retried() -> None:
    async with theatre() as play:
        play.server.plan(write(b"", then="hang"))
        future = await play.gateway.submit(a_request())
        await play.server.arrived(1)
        (call,) = play.gateway._lines["fast"]._calls._running  # noqa: SLF001
        assert call.task is not None
        call.task.cancel()
        (ended,) = await play.end(future)

        assert isinstance(ended, LLMResponse)
        assert ended.attempts == 2


async def test_14_a_disk_that_refuses_costs_rows_and_no_request(tmp_path: Path) -> None:
    (tmp_path / "gateway" / "responses.jsonl").mkdir(parents=True)
    async with theatre(log_dir=tmp_path) as play:
        assert (await play.ask(a_request())).text == "hello"
        await play.gateway.aclose()
        assert play.gateway.stats()["fast"].journal_dropped == 1


async def test_15_agents_share_a_model_whatever_each_of_them_has_waiting() -> None:
    async with theatre(concurrency=2) as play:
        loud = [a_request(f"loud{n}", agent_id="loud") for n in range(200)]
        quiet = [a_request(f"quiet{n}", agent_id="quiet") for n in range(20)]
        await play.end(*await play.gateway.submit_many([*loud, *quiet]))

        order = [visit.said.rstrip("0123456789") for visit in play.server.visits]
        from_then_on = order[order.index("quiet") :]
        share = Counter(from_then_on[:40])
        assert abs(share["loud"] - share["quiet"]) <= 8


async def test_15_the_urgent_go_first_and_nobody_starves() -> None:
    async with theatre(concurrency=1) as play:
        low = [a_request(f"low{n}") for n in range(10)]
        high = [a_request(f"high{n}", priority=9) for n in range(70)]
        await play.end(*await play.gateway.submit_many([*low, *high]))

        order = [visit.said.rstrip("0123456789") for visit in play.server.visits]
        assert order[:60].count("high") > 45
        assert order[:60].count("low") >= 5


async def test_16_limits_hold_in_every_minute_on_the_servers_count_and_are_used() -> None:
    async with theatre(requests_per_minute=60, tokens_per_minute=10_000, deadline="2h") as play:
        play.server.rule = lambda _: say(body=good(tokens=500))
        requests = some(120, est_tokens=500)
        await play.end(*await play.gateway.submit_many(requests))

        times = [visit.at for visit in play.server.visits]
        minute = timedelta(seconds=60)
        busiest = max(sum(start <= at < start + minute for at in times) for start in times)
        assert busiest * 500 <= 10_000
        assert busiest <= 60
        needed = 120 * 500 / 10_000 - 1  # minutes after the first burst
        assert seconds(times[0], times[-1]) <= needed * 60 / 0.9


async def test_what_the_caller_gets_is_what_the_server_said() -> None:
    async with theatre() as play:
        play.server.plan(say(headers={"X-Request-Id": "req-7"}))
        response = await play.ask(a_request(params={"temperature": 0}))

        assert (response.text, response.provider_request_id, response.usage) == ("hello", "req-7", (6, 6))
        (visit,) = play.server.visits
        assert visit.path == "/v1/chat/completions"
        assert visit.headers["content-type"] == "application/json"
        assert visit.body["temperature"] == 0


async def test_the_key_is_sent_and_follows_no_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-opensesameopensesame")
    async with theatre(api_key_env="SOME_KEY") as play:
        play.server.plan(write(http(307, b"", {"Location": "http://127.0.0.1:9/elsewhere"})))
        error = await play.error(a_request())

        assert isinstance(error, RequestRejected)
        assert [visit.headers["authorization"] for visit in play.server.visits] == ["Bearer sk-opensesameopensesame"]
        assert "opensesame" not in repr(play.gateway.models)


async def test_connections_are_used_again() -> None:
    async with theatre(concurrency=4) as play:
        await play.end(*await play.gateway.submit_many(some(100)))

        assert len({visit.connection for visit in play.server.visits}) <= 4


async def test_real_time_passes_too() -> None:
    """The rest of these tests let time pass by hand: here the gateway's own clock does."""
    async with FaultServer(SystemClock()) as server:
        server.plan(say(500), write(b"", then="hang"))
        models = {"fast": ModelConfig(base_url=server.url, model_name="m", attempt_timeout="300ms")}
        async with Gateway(models, policy=[0.05, 0.05]) as gateway, asyncio.timeout(PATIENCE):
            response = await gateway.ask(a_request())

        assert response.attempts == 3
        assert seconds(server.visits[0].at, server.visits[1].at) >= 0.045
        assert seconds(server.visits[1].at, server.visits[2].at) >= 0.3
