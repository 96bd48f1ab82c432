import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.core.backoff import Additive, Exponential
from redrive.core.errors import (
    BadAnswer,
    DeadlineExceeded,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    RetriesExhausted,
    ServerFault,
    TransportFault,
)
from redrive.core.event import BatchSettled, HandlerFailed, LetterWritten
from redrive.core.policy import RetryPolicy
from redrive.core.reason import Reason
from redrive.gateway import LLMRequest, Post, Reply
from tests.unit.gateway.stage import JSON, Provider, a_request, answer, kinds, on_stage, refusal, rows


async def test_a_success_is_one_attempt_and_one_row(tmp_path: Path) -> None:
    async with on_stage(Provider(answer("hello")), log_dir=tmp_path) as stage:
        response = await stage.ask(a_request())

        assert (response.text, response.attempts) == ("hello", 1)
        assert len(stage.provider.posts) == 1
    (row,) = rows(tmp_path, "responses")
    assert (row["request_id"], row["agent_id"], row["model"], row["status"]) == ("r1", "planner", "fast", "success")
    assert (row["attempt"], row["latency_ms"], row["queue_ms"]) == (1, 0.0, 0.0)
    assert row["timestamp"] == "2030-01-01T00:00:00+00:00"
    assert rows(tmp_path, "retries") == rows(tmp_path, "errors") == []


@pytest.mark.parametrize("status", [429, 408, 409, 425, 500, 502, 503, 529])
async def test_a_fault_and_then_an_answer_are_two_attempts(status: int, tmp_path: Path) -> None:
    async with on_stage(Provider(refusal(status)), log_dir=tmp_path, policy=[3]) as stage:
        before = stage.clock.now()
        response = await stage.ask(a_request())

        assert response.attempts == 2
        assert stage.clock.now() - before == timedelta(seconds=3)
    (retry,) = rows(tmp_path, "retries")
    assert (retry["attempt"], retry["delay_ms"], retry["http_status"], retry["status"]) == (1, 3000.0, status, "retry")
    assert rows(tmp_path, "responses")[0]["attempt"] == 2
    assert rows(tmp_path, "errors") == []


@pytest.mark.parametrize("fault", [TransportFault("reset"), BadAnswer("cut"), OSError("what is this")])
async def test_a_fault_of_the_wire_is_retried(fault: Exception) -> None:
    async with on_stage(Provider(fault)) as stage:
        assert (await stage.ask(a_request())).attempts == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_rejected_request_is_not_retried_and_is_no_letter(status: int, tmp_path: Path) -> None:
    async with on_stage(Provider(refusal(status, "bad")), log_dir=tmp_path) as stage:
        error = await stage.error(a_request())

        assert isinstance(error, RequestRejected)
        assert (error.status_code, error.code, error.request_id, error.model) == (status, "bad", "r1", "fast")
        assert len(stage.provider.posts) == 1
        assert stage.dlq.count == 0
    assert rows(tmp_path, "retries") == []
    assert rows(tmp_path, "errors")[0]["reason"] == "rejected"


async def test_three_retries_are_four_attempts_and_no_wait_after_the_last(tmp_path: Path) -> None:
    async with on_stage(Provider(always=refusal(500, "boom")), log_dir=tmp_path, policy=[1, 2, 4]) as stage:
        before = stage.clock.now()
        error = await stage.error(a_request(metadata={"job": 7}))

        assert isinstance(error, RetriesExhausted)
        assert isinstance(error.__cause__, ServerFault)
        assert error.last is error.__cause__
        assert (error.attempts, error.status_code, len(stage.provider.posts)) == (4, 500, 4)
        assert stage.clock.now() - before == timedelta(seconds=7)
        letter = stage.dlq.last
    assert (letter.letter_id, letter.kind, letter.reason) == (error.letter_id, "llm", Reason.ATTEMPTS_EXHAUSTED)
    assert (letter.queue, letter.group, letter.original_message_id) == ("llm.fast", "gateway", "r1")
    assert (letter.error_type, letter.error_code, letter.retry_count) == ("redrive.ServerFault", "boom", 4)
    assert [attempt.number for attempt in letter.attempts] == [1, 2, 3, 4]
    assert letter.context == {"agent_id": "planner", "model": "fast", "possibly_executed": False, "job": 7}
    assert letter.payload is not None
    assert LLMRequest.from_json(letter.payload) == a_request(metadata={"job": 7})
    assert [row["delay_ms"] for row in rows(tmp_path, "retries")] == [1000.0, 2000.0, 4000.0]
    (row,) = rows(tmp_path, "errors")
    assert (row["reason"], row["letter_id"], row["attempt"]) == ("attempts_exhausted", error.letter_id, 4)


async def test_the_default_is_three_retries_with_full_jitter() -> None:
    async with on_stage(Provider(always=refusal(500))) as stage:
        error = await stage.error(a_request())
        assert isinstance(error, RetriesExhausted)
        delays = [event.retry_in for event in stage.listener.events if isinstance(event, HandlerFailed)]

    assert len(delays) == 3
    assert all(0 <= delay <= most for delay, most in zip(delays, (1, 2, 4), strict=True))


async def test_the_jitter_of_the_seed_is_additive() -> None:
    policy = RetryPolicy(3, backoff=Exponential(1), jitter=Additive("500ms"))
    async with on_stage(Provider(always=refusal(500)), policy=policy) as stage:
        await stage.error(a_request())
        delays = [event.retry_in for event in stage.listener.events if isinstance(event, HandlerFailed)]

    assert all(abs(delay - mean) <= 0.5 for delay, mean in zip(delays, (1, 2, 4), strict=True))


async def test_quota_fails_fast_and_closes_the_scope_with_one_probe_at_a_time() -> None:
    async with on_stage(Provider(always=refusal(429, "insufficient_quota"))) as stage:
        first = await stage.error(a_request("r1"))
        second = await stage.error(a_request("r2"))

        assert isinstance(first, QuotaExhausted)
        assert isinstance(second, QuotaExhausted)
        assert first is not second
        assert second.request_id == "r2"
        assert len(stage.provider.posts) == 1
        assert stage.gateway.stats()["fast"].breaker is not None

        await stage.pass_time(1)
        await stage.error(a_request("r3"))  # the probe
        await stage.error(a_request("r4"))
        assert len(stage.provider.posts) == 2


@pytest.mark.parametrize(
    ("status", "code", "opens"),
    [
        (401, "", True),
        (403, "permission_error", True),
        (403, "PERMISSION_DENIED", True),
        (403, "", False),
        (403, "content_policy_violation", False),
        (404, "", True),
        (404, "model_not_found", True),
        (404, "DeploymentNotFound", True),
        (404, "file_not_found", False),
        (400, "model_not_found", False),
    ],
)
async def test_what_would_be_refused_to_everybody_opens_the_breaker_at_once(
    status: int, code: str, *, opens: bool
) -> None:
    async with on_stage(Provider(refusal(status, code))) as stage:
        await stage.error(a_request("r1"))
        assert (stage.gateway.stats()["fast"].breaker is not None) == opens

        if opens:
            assert (await stage.error(a_request("r2"))).status_code == status
            assert len(stage.provider.posts) == 1
        else:
            assert (await stage.ask(a_request("r2"))).text == "hello"


async def test_a_row_of_a_retry_says_how_long_the_attempt_waited_and_took(tmp_path: Path) -> None:
    async def silent(_: Post) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError

    async with on_stage(Provider(always=silent), attempt_timeout="3s", concurrency=1, log_dir=tmp_path) as stage:
        futures = await stage.gateway.submit_many([a_request("r1"), a_request("r2")])
        await stage.pass_time(6)
        for future in futures:
            future.cancel()
        await stage.settle()

    told = [(row["request_id"], row["queue_ms"], row["latency_ms"]) for row in rows(tmp_path, "retries")]
    assert told == [("r1", 0.0, 3000.0), ("r2", 3000.0, 3000.0)]


async def test_a_scope_that_was_refused_opens_with_the_first_answer() -> None:
    async with on_stage(Provider(refusal(401))) as stage:
        await stage.error(a_request("r1"))
        await stage.pass_time(1)

        assert (await stage.ask(a_request("r2"))).text == "hello"
        assert stage.gateway.stats()["fast"].breaker is None


async def test_a_refusal_is_forgotten_when_a_probe_meets_an_outage() -> None:
    async with on_stage(Provider(refusal(401), refusal(503))) as stage:
        await stage.error(a_request("r1"))
        await stage.pass_time(1)
        probe = await stage.gateway.submit(a_request("r2"))
        await stage.settle()
        other = await stage.gateway.submit(a_request("r3"))
        await stage.settle()
        assert (probe.done(), other.done()) == (False, False)

        await stage.pass_time(1)
        assert (probe.result().text, other.result().text) == ("hello", "hello")
        assert stage.gateway.stats()["fast"].breaker is None


async def test_a_refusal_that_others_met_says_what_is_true_of_the_request() -> None:
    cut = TransportFault("cut", possibly_executed=True)
    async with on_stage(Provider(cut, refusal(401)), policy=[1]) as stage:
        sent = await stage.gateway.submit(a_request("r1"))
        await stage.pass_time(0.5)
        await stage.error(a_request("r2"))
        never_sent = await stage.error(a_request("r3"))
        (error,) = await stage.end(sent)

        assert not never_sent.possibly_executed
        assert isinstance(error, RequestRejected)
        assert error.possibly_executed
        assert len(stage.provider.posts) == 2


async def test_a_told_delay_is_a_floor() -> None:
    async with on_stage(Provider(refusal(429, headers={"retry-after": "7"}))) as stage:
        before = stage.clock.now()
        await stage.ask(a_request())

        assert timedelta(seconds=7) <= stage.clock.now() - before <= timedelta(seconds=9)


async def test_a_long_pause_postpones_the_request_if_its_deadline_allows(tmp_path: Path) -> None:
    provider = Provider(refusal(429, headers={"retry-after": "300"}))
    async with on_stage(provider, deadline="20m", log_dir=tmp_path) as stage:
        future = await stage.gateway.submit(a_request())
        await stage.settle()
        stats = stage.gateway.stats()["fast"]
        assert (stats.waiting, stats.in_flight) == (1, 0)
        assert stats.closed_until == stage.clock.now() + timedelta(seconds=300)

        await stage.end(future)
        assert future.result().attempts == 2
    assert rows(tmp_path, "retries")[0]["status"] == "postponed"


async def test_a_pause_beyond_the_deadline_ends_the_request_at_once() -> None:
    async with on_stage(Provider(refusal(429, headers={"retry-after": "3600"}))) as stage:
        before = stage.clock.now()
        error = await stage.error(a_request(deadline="30s"))

        assert isinstance(error, RateLimited)
        assert error.until is not None
        assert error.until >= before + timedelta(hours=1)
        assert stage.clock.now() == before
        assert stage.dlq.last.reason is Reason.DEADLINE
        assert error.letter_id == stage.dlq.last.letter_id


async def test_no_retry_is_waited_for_that_would_come_after_the_deadline() -> None:
    async with on_stage(Provider(always=refusal(500)), policy=[5]) as stage:
        before = stage.clock.now()
        error = await stage.error(a_request(deadline="3s"))

        assert isinstance(error, DeadlineExceeded)
        assert isinstance(error.__cause__, ServerFault)
        assert stage.clock.now() == before
        assert stage.dlq.last.reason is Reason.DEADLINE
        assert stage.dlq.last.error_type == "redrive.ServerFault"


async def test_what_was_no_answer_is_in_the_letter() -> None:
    page = Reply(200, {"content-type": "text/html"}, b"<html>sorry</html>")
    async with on_stage(Provider(always=page), policy=0) as stage:
        error = await stage.error(a_request())

        assert isinstance(error.__cause__, BadAnswer)
        assert stage.dlq.last.context["answer"] == "<html>sorry</html>"


async def test_a_request_that_may_have_been_executed_says_so() -> None:
    cut = TransportFault("cut", possibly_executed=True)
    async with on_stage(Provider(cut, refusal(500), always=refusal(500))) as stage:
        error = await stage.error(a_request())
        assert error.possibly_executed
        assert stage.dlq.last.context["possibly_executed"] is True
    async with on_stage(Provider(TransportFault("cut", possibly_executed=True))) as stage:
        assert (await stage.ask(a_request())).possibly_executed


def peak(delays: list[float]) -> float:
    """The share of the busiest 100 ms."""
    return max(sum(start <= one < start + 0.1 for one in delays) for start in delays) / len(delays)


async def delays_of(provider: Provider, callers: int) -> dict[int, list[float]]:
    """The delays drawn for callers who all fail always, by the number of the attempt."""
    found: dict[int, list[float]] = {}
    async with on_stage(provider, deadline="9d") as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(callers)])
        await stage.end(*futures, step=5)
        for event in stage.listener.events:
            if isinstance(event, HandlerFailed):
                found.setdefault(event.attempt, []).append(event.retry_in)
    return found


async def test_a_thousand_who_failed_together_come_back_apart() -> None:
    delays = await delays_of(Provider(always=refusal(429)), 1000)

    assert {number: len(some) for number, some in delays.items()} == {1: 1000, 2: 1000, 3: 1000}
    assert peak(delays[1]) <= 0.15
    assert peak(delays[3]) <= 0.06


async def test_those_who_were_told_the_same_come_back_apart_and_none_early() -> None:
    delays = await delays_of(Provider(always=refusal(429, headers={"retry-after": "2"})), 100)

    assert min(delays[1]) >= 2
    assert peak(delays[1]) <= 0.25


async def test_what_happens_is_told_as_events() -> None:
    async with on_stage(Provider(refusal(500), always=answer()), policy=1) as stage:
        await stage.ask(a_request())
        await stage.pass_time(2)
        settled = [event for event in stage.listener.events if isinstance(event, BatchSettled)]
        assert sum(event.acked for event in settled) == sum(event.retried for event in settled) == 1
        assert settled[-1].after_failures == {1: 1}
        assert (settled[0].queue, settled[0].group) == ("llm.fast", "gateway")
    async with on_stage(Provider(always=refusal(500)), policy=0) as stage:
        await stage.error(a_request())
        assert [type(event) for event in stage.listener.events] == [LetterWritten]


async def test_the_wire_carries_what_was_asked() -> None:
    async with on_stage(Provider()) as stage:
        await stage.ask(a_request(params={"temperature": 0.2}))
    (post,) = stage.provider.posts
    assert post.url == "http://provider.test/v1/chat/completions"
    assert stage.provider.bodies == [
        {"model": "model-1", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.2}
    ]


async def test_the_anthropic_wire_carries_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "k-123")
    said = Reply(200, JSON, b'{"type": "message", "content": [{"type": "text", "text": "hi"}]}')
    async with on_stage(Provider(said), wire="anthropic", api_key_env="SOME_KEY") as stage:
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
        assert (await stage.ask(a_request(messages=messages))).text == "hi"
    (post,) = stage.provider.posts
    assert post.url == "http://provider.test/v1/messages"
    assert (post.headers["x-api-key"], post.headers["anthropic-version"]) == ("k-123", "2023-06-01")
    (body,) = stage.provider.bodies
    assert body["system"] == [{"type": "text", "text": "be brief"}]
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    assert body["max_tokens"] > 0


async def test_one_key_goes_with_every_attempt() -> None:
    async with on_stage(Provider(refusal(500)), idempotency=True) as stage:
        await stage.ask(a_request())
    first, second = (post.headers["Idempotency-Key"] for post in stage.provider.posts)
    assert first == second


async def test_errors_of_many_requests_are_objects_of_their_own() -> None:
    async with on_stage(Provider(always=refusal(400))) as stage:
        futures = await stage.gateway.submit_many([a_request(str(n)) for n in range(3)])
        ended = await stage.end(*futures)

    assert kinds(ended) == ["RequestRejected"] * 3
    assert len({id(one) for one in ended}) == 3
