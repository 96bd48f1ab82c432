"""Scenarios 12 and 13: accepted requests outlive their process, and letters of requests are redriven."""

import asyncio
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from redrive import ConfigError, Message, connect
from redrive.brokers.memory import MemoryBroker
from redrive.clock import SystemClock
from redrive.core.errors import (
    DeadlineExceeded,
    GatewayClosed,
    QuotaExhausted,
    RateLimited,
    RequestIdConflict,
    RequestRejected,
    RetriesExhausted,
    ServerFault,
)
from redrive.core.reason import Reason
from redrive.gateway import Gateway, LLMRequest, ModelConfig
from redrive.wiring import answering
from tests.gateway.desk import a_desk
from tests.gateway.durable_worker import CONCURRENCY, at_work
from tests.gateway.fault_server import DONE, EVENTS, PATIENCE, Visit, refuse, say, words, write
from tests.gateway.theatre import a_request, some

MODELS = {"fast": ModelConfig(base_url="http://127.0.0.1:1/v1", model_name="model-1")}


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A broker of one's own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/llm.db"
    return str(request.getfixturevalue("fresh_redis").url)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/llm.db"


def rows(log_dir: Path, name: str) -> list[dict[str, Any]]:
    path = log_dir / "gateway" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def test_a_request_is_answered_by_a_worker_and_picked_up_by_its_id(url: str) -> None:
    async with a_desk(url) as desk:
        desk.server.plan(say(500))
        assert await desk.gateway.submit(a_request()) == "r1"
        assert await desk.gateway.answer("r1") is None
        async with at_work(desk.url, desk.server.url, retry=[0]):
            response = await desk.gateway.result("r1")

        assert (response.text, response.attempts, response.usage) == ("hello", 2, (6, 6))
        assert not response.possibly_executed


async def test_an_attempt_that_ended_without_a_reply_may_have_been_executed(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=[0]) as gateway:
        desk.server.plan(write(b"", then="reset"))

        assert (await gateway.ask(a_request())).possibly_executed


async def test_whoever_asks_a_durable_gateway_gets_the_answer_which_stays_for_others(url: str) -> None:
    async with a_desk(url) as desk:
        async with at_work(desk.url, desk.server.url) as gateway:
            assert (await gateway.ask(a_request())).text == "hello"
            futures = await gateway.submit_many(some(3))
            assert [(await future).text for future in futures] == ["hello"] * 3

        assert (await desk.gateway.result("r2")).text == "hello"


async def test_what_is_refused_among_many_is_not_persisted(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url) as gateway:
        many = [a_request("r1"), a_request("r2", model="unknown"), a_request("r3")]
        first, second, third = await gateway.submit_many(many)

        assert [(await future).request_id for future in (first, third)] == ["r1", "r3"]
        assert isinstance(second.exception(), RequestRejected)
        assert {queue for queue, _ in await desk.broker.queues() if queue.startswith("llm.")} == {"llm.fast"}


async def test_who_waits_is_told_of_an_answer_that_another_process_gave(file: str) -> None:
    async with a_desk(file) as desk:
        waiting = desk.gateway.wait(await desk.gateway.submit(a_request()))
        async with at_work(desk.url, desk.server.url):
            assert (await waiting).text == "hello"


async def test_a_request_that_was_answered_is_not_sent_again(url: str) -> None:
    async with a_desk(url) as desk:
        async with at_work(desk.url, desk.server.url) as gateway:
            first = await gateway.ask(a_request())
            await gateway.submit_many([a_request(), a_request("r2")])
            await gateway.result("r2")

        assert await desk.gateway.answer("r1") == first
        assert Counter(visit.said for visit in desk.server.visits) == {"r1": 1, "r2": 1}


async def test_13_an_exhausted_request_is_a_letter_of_its_own_kind_that_can_be_redriven(url: str) -> None:
    async with a_desk(url) as desk, at_work(desk.url, desk.server.url, retry=[0]) as gateway:
        desk.server.rule = lambda _: say(500)
        with pytest.raises(RetriesExhausted) as raised:
            await gateway.ask(a_request())
        entry = await desk.letter()
        letter = entry.letter
        assert (raised.value.letter_id, raised.value.attempts) == (letter.letter_id, 2)
        assert (letter.kind, letter.reason, letter.error_type) == (
            "llm",
            Reason.ATTEMPTS_EXHAUSTED,
            "redrive.ServerFault",
        )
        names = {"request_id": "r1", "agent_id": "planner", "model": "fast"}
        assert letter.context == {**names, "possibly_executed": False}
        assert letter.payload is not None
        assert LLMRequest.from_json(letter.payload) == a_request(deadline="10m")  # which is the model's

        desk.server.rule = lambda _: say()
        await desk.broker.dead_letters("llm.fast").redrive(entry.entry_id)
        assert (await desk.gateway.result("r1")).text == "hello"


async def test_a_rejected_request_is_an_error_and_a_letter_after_one_attempt(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url) as gateway:
        desk.server.rule = lambda _: say(422)
        with pytest.raises(RequestRejected):
            await gateway.ask(a_request())
        letter = (await desk.letter()).letter

        assert (letter.kind, letter.reason, letter.error_type, letter.retry_count) == (
            "llm",
            Reason.REJECTED,
            "redrive.RequestRejected",
            1,
        )
        assert len(desk.server.visits) == 1


async def test_a_request_whose_deadline_has_passed_is_a_letter_and_is_not_sent(file: str) -> None:
    async with a_desk(file) as desk:
        await desk.gateway.submit(a_request(deadline=0.001))
        waiting = desk.gateway.wait("r1")
        await asyncio.sleep(0.002)
        async with at_work(desk.url, desk.server.url) as gateway:
            told = gateway.durable
            assert told is not None
            here = told.wait("r1")
            letter = (await desk.letter()).letter
            with pytest.raises(DeadlineExceeded):
                await here

        assert letter.reason is Reason.DEADLINE
        assert desk.server.visits == []
        waiting.cancel()  # a letter that another process has written is not heard of
        await desk.gateway.aclose()


async def test_the_caller_of_a_durable_request_gets_the_error_that_it_failed_with(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=0) as gateway:
        desk.server.plan(say(503, headers={"x-request-id": "their-1"}))
        with pytest.raises(RetriesExhausted) as exhausted:
            await gateway.ask(a_request("r1"))
        desk.server.plan(refuse(429, "insufficient_quota"))
        with pytest.raises(QuotaExhausted) as quota:
            await gateway.ask(a_request("r2"))

    assert isinstance(exhausted.value.last, ServerFault)
    assert (exhausted.value.status_code, exhausted.value.provider_request_id) == (503, "their-1")
    assert (quota.value.status_code, quota.value.request_id) == (429, "r2")
    assert exhausted.value.letter_id is not None
    assert quota.value.letter_id is not None


async def test_a_pause_beyond_the_deadline_of_a_durable_request_is_told_at_once(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url) as gateway:
        desk.server.rule = lambda _: say(429, headers={"Retry-After": "3600"})
        with pytest.raises(RateLimited) as raised:
            await gateway.ask(a_request(deadline="30m"))
        letter = (await desk.letter()).letter
        with pytest.raises(RateLimited):  # the gate is closed by now: this one is not even sent
            await gateway.ask(a_request("r2", deadline="30m"))

    assert raised.value.until is not None
    assert raised.value.letter_id == letter.letter_id
    assert letter.reason is Reason.DEADLINE
    assert len(desk.server.visits) == 1


async def test_a_durable_request_whose_deadline_passes_ends_for_its_caller_though_nobody_works_on_it(file: str) -> None:
    broker = connect(file)
    async with Gateway(MODELS, broker=broker) as gateway:
        with pytest.raises(DeadlineExceeded):
            await gateway.ask(a_request(deadline=0.01))
    await broker.aclose()


async def test_a_durable_request_without_a_deadline_has_that_of_its_model(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, deadline="10s") as gateway:
        desk.server.rule = lambda _: say(429, headers={"Retry-After": "3600"})
        with pytest.raises(RateLimited):
            await gateway.ask(a_request("r1"))
        (second,) = await gateway.submit_many([a_request("r2")])
        with pytest.raises(RateLimited):
            await second
        letter = (await desk.letter()).letter

    assert letter.reason is Reason.DEADLINE
    assert letter.payload is not None
    assert LLMRequest.from_json(letter.payload) == a_request("r1", deadline="10s")


async def test_who_waits_for_a_request_that_nobody_works_on_waits_no_longer_than_its_model_allows(file: str) -> None:
    broker = connect(file)
    model = ModelConfig(base_url="http://127.0.0.1:1/v1", model_name="model-1", deadline=0.01)
    async with Gateway({"fast": model}, broker=broker) as gateway:
        with pytest.raises(DeadlineExceeded):
            await gateway.ask(a_request())
    await broker.aclose()


async def test_a_durable_request_waits_behind_a_closed_gate_without_spending_attempts(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, deadline=None) as gateway:
        desk.server.plan(say(429, headers={"Retry-After": "3600"}))
        with pytest.raises(RateLimited):
            await gateway.ask(a_request("r1", deadline="1m"))
        await gateway.submit(a_request("r2"))
        while not gateway.stats()["fast"].postponed:  # noqa: ASYNC110 - it is taken by a worker
            await asyncio.sleep(0.02)

        depth = await desk.broker.depth("llm.fast", group="gateway")
        assert depth.scheduled == 0
        assert len(desk.server.visits) == 1
        await gateway.call_off("r2")


async def test_another_durable_request_with_an_id_that_is_under_way_is_a_conflict(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url) as gateway:
        desk.server.plan(write(b"", then="hang"))
        first = await gateway.submit(a_request("r1", deadline="1m"))
        other = LLMRequest(**{**_fields(a_request("r2")), "request_id": "r1"})
        with pytest.raises(RequestIdConflict):
            await gateway.submit(other)
        joined, refused, twin = await gateway.submit_many([a_request("r1"), other, a_request("r3")])

        assert isinstance(refused.exception(), RequestIdConflict)
        assert not first.done()
        assert (await twin).request_id == "r3"
        await gateway.call_off("r1")
        assert first.cancelled()
        assert joined.cancelled()


async def test_two_requests_with_one_id_get_no_answer_of_each_other(url: str) -> None:
    other = LLMRequest(**{**_fields(a_request("r2")), "request_id": "r1"})
    async with a_desk(url) as desk, at_work(desk.url, desk.server.url) as gateway:
        assert (await gateway.ask(a_request("r1"))).text == "hello"
        with pytest.raises(RequestIdConflict) as raised:
            await gateway.ask(other)

        assert (await desk.letter()).letter.reason is Reason.REJECTED
        assert raised.value.request_id == "r1"
        assert [visit.said for visit in desk.server.visits] == ["r1"]
        assert (await gateway.ask(a_request("r1"))).text == "hello"


async def test_a_letter_of_another_request_with_the_same_id_is_not_told_to_who_waits(file: str) -> None:
    other = LLMRequest(**{**_fields(a_request("r2")), "request_id": "r1"})
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url) as gateway:
        desk.server.plan(write(b"", then="hang"))
        first = await gateway.submit(a_request("r1"))
        await desk.server.arrived(1)
        await desk.gateway.submit(other)  # in another process, as it were
        assert (await desk.letter()).letter.error_type == "redrive.RequestIdConflict"
        await gateway.ask(a_request("r3"))

        assert not first.done()
        await gateway.call_off("r1")


def _fields(request: LLMRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in LLMRequest.__dataclass_fields__}


async def test_a_request_that_was_called_off_is_neither_sent_nor_a_letter(url: str) -> None:
    async with a_desk(url) as desk:
        waiting = desk.gateway.wait(await desk.gateway.submit(a_request()))
        await desk.gateway.call_off("r1")
        async with at_work(desk.url, desk.server.url) as gateway:
            await gateway.ask(a_request("r2"))
            with pytest.raises(RequestRejected, match="called off"):
                await gateway.result("r1")

        assert waiting.cancelled()
        assert [visit.said for visit in desk.server.visits] == ["r2"]
        assert await desk.broker.dead_letters("llm.fast").length() == 0


async def test_a_request_that_is_called_off_in_flight_is_broken_off_and_no_letter(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url) as gateway:
        desk.server.plan(write(b"", then="hang"))
        future = await gateway.submit(a_request())
        await desk.server.arrived(1)
        await gateway.call_off("r1")
        await desk.server.gone(1)
        await gateway.ask(a_request("r2"))

        assert future.cancelled()
        assert [visit.said for visit in desk.server.visits] == ["r1", "r2"]
        assert await desk.broker.dead_letters("llm.fast").length() == 0


async def test_who_stops_waiting_does_not_stop_the_request(file: str) -> None:
    async with a_desk(file) as desk:
        (await _submitted(desk.url, desk.server.url)).cancel()
        async with at_work(desk.url, desk.server.url):
            assert (await desk.gateway.result("r1")).text == "hello"


async def _submitted(broker: str, base_url: str) -> asyncio.Future[Any]:
    """A request, submitted by a gateway that is closed then."""
    opened = connect(broker)
    models = {"fast": ModelConfig(base_url=base_url, model_name="model-1")}
    async with Gateway(models, broker=opened) as gateway:
        future = await gateway.submit(a_request())
    await opened.aclose()
    assert isinstance(future.exception(), GatewayClosed)
    return future


async def test_cancelling_a_durable_request_ends_the_waiting_and_spends_no_attempt(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url) as gateway:
        go = asyncio.Event()

        async def slowly(visit: Visit) -> None:
            await go.wait()
            await say()(visit)

        desk.server.rule = lambda _: slowly
        future = await gateway.submit(a_request())
        await desk.server.arrived(1)

        assert gateway.cancel("r1")
        assert not gateway.cancel("r1")
        assert future.cancelled()
        go.set()
        assert (await gateway.result("r1")).attempts == 1
        assert len(desk.server.visits) == 1


async def test_draining_waits_for_durable_requests_too(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url) as gateway:
        futures = await gateway.submit_many(some(3))
        await gateway.drain()

        assert [future.result().text for future in futures] == ["hello"] * 3


async def test_a_failed_attempt_gives_nothing_up_that_was_answered_meanwhile(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=0) as gateway:
        assert gateway.durable is not None
        other = await gateway.ask(a_request("r2"))
        kept = replace(other, request_id="r1", fingerprint=a_request().fingerprint).to_json()

        async def answered_elsewhere(visit: Visit) -> None:
            assert gateway.durable is not None
            await gateway.durable.answers.put("r1", kept)
            await say(500)(visit)

        desk.server.rule = lambda _: answered_elsewhere
        await gateway.ask(a_request())

        assert await desk.broker.dead_letters("llm.fast").length() == 0


async def test_what_is_no_request_is_a_letter(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url):
        await desk.broker.publish("llm.fast", [Message("", "llm.fast", b'{"what": "is this"}')])

        assert (await desk.letter()).letter.reason is Reason.REJECTED


async def test_the_journal_of_a_durable_gateway_has_the_same_rows(file: str, tmp_path: Path) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=[0], log_dir=tmp_path) as gateway:
        desk.server.plan(say(500))
        await gateway.ask(a_request("answered"))
        desk.server.rule = lambda _: say(500)
        with pytest.raises(RetriesExhausted) as raised:
            await gateway.ask(a_request("given-up"))

    names = ("request_id", "agent_id", "model", "attempt", "status")
    told = {file: [[row[name] for name in names] for row in rows(tmp_path, file)] for file in ("responses", "retries")}
    assert told == {
        "responses": [["answered", "planner", "fast", 2, "success"]],
        "retries": [["answered", "planner", "fast", 1, "retry"], ["given-up", "planner", "fast", 1, "retry"]],
    }
    (error,) = rows(tmp_path, "errors")
    assert (error["request_id"], error["attempt"], error["reason"]) == ("given-up", 2, "attempts_exhausted")
    assert error["letter_id"] == raised.value.letter_id
    assert all(row["delay_ms"] == 0 and row["error_type"] == "ServerFault" for row in rows(tmp_path, "retries"))


async def test_what_is_not_to_be_kept_is_retried_here_and_leaves_nothing(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=[0]) as gateway:
        desk.server.plan(say(500))
        assert (await gateway.ask(a_request(), keep=False)).attempts == 2
        desk.server.plan(say(500), write(EVENTS + words("hello", "stop") + DONE))
        async with gateway.stream(a_request("r2")) as stream:
            assert "".join([delta.text async for delta in stream]) == "hello"

        assert [await desk.gateway.answer(name) for name in ("r1", "r2")] == [None, None]


async def test_nobody_waits_for_an_answer_without_end(file: str) -> None:
    async with a_desk(file) as desk:
        try:
            await desk.gateway.result("never", within=0.05)
        except TimeoutError as error:
            assert "never" in str(error)  # noqa: PT017 - TimeoutError is also what ends the whole test
        else:
            raise AssertionError


async def test_what_a_durable_gateway_cannot_do_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="answers: memory has no place"):
        await Gateway(MODELS, broker=MemoryBroker(clock=SystemClock())).__aenter__()
    async with Gateway(MODELS, policy=0) as memory:
        with pytest.raises(ConfigError, match="keeps no answers"):
            await memory.result("r1")
        with pytest.raises(ConfigError, match="with a broker"):
            await answering(memory).__aenter__()


async def test_12_accepted_requests_survive_kill_9(url: str) -> None:
    count = 500
    async with a_desk(url) as desk:
        names = await desk.gateway.submit_many(some(count))
        killed = 0
        process = desk.start()

        refused: set[str] = set()

        def now_and_then(visit: Visit) -> object:
            if visit.number % 17:
                return say()
            refused.add(visit.said)
            return say(500)

        desk.server.rule = now_and_then  # type: ignore[assignment]
        try:
            for seen in (20, 150, 300):
                await desk.server.arrived(seen)
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
                process = desk.start()
            answers = [await desk.gateway.result(name, within=PATIENCE * 2) for name in names]
        finally:
            process.kill()
            process.wait()

        assert sorted(answer.request_id for answer in answers) == sorted(names)
        sent = Counter(visit.said for visit in desk.server.visits)
        failed = len(desk.server.visits) // 17
        in_flight = CONCURRENCY * killed  # handlers that ran: asked, or answered and not yet kept
        assert set(sent) == {*names}
        assert sum(sent.values()) <= count + failed + in_flight
        twice = {name for name, times in sent.items() if times > 1 and name not in refused}
        assert twice <= {answer.request_id for answer in answers if answer.possibly_executed}
        assert await desk.broker.dead_letters("llm.fast").length() == 0
