"""What fails in a durable gateway, and what is told of it: to the caller, in the letter, and in the journal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from redrive import connect
from redrive.core.errors import BadAnswer, RetriesExhausted, TransportFault
from redrive.core.ports.answers import Answers
from redrive.gateway import Gateway, ModelConfig, Outside, executor
from redrive.gateway.durable import answers_of
from redrive.wiring import answering
from tests.gateway.desk import Desk, a_desk
from tests.gateway.durable_worker import at_work
from tests.gateway.fault_server import Act, good, http, say, write
from tests.gateway.theatre import a_request, some
from tests.unit.gateway.stage import rows

CUT = write(http(200, good())[:-5])
HTML = say(200, b"<html>busy</html>", {"Content-Type": "text/html"})


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/llm.db"


async def exhausted(gateway: Gateway, desk: Desk, *acts: Act) -> RetriesExhausted:
    """How a request ends whose every attempt is met so."""
    desk.server.plan(*acts)
    with pytest.raises(RetriesExhausted) as raised:
        await gateway.ask(a_request())
    return raised.value


async def test_a_refused_connection_was_surely_not_executed(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, "http://127.0.0.1:1/v1", retry=[0]) as gateway:
        error = await exhausted(gateway, desk)
        letter = (await desk.letter()).letter

    assert isinstance(error.last, TransportFault)
    assert (error.possibly_executed, letter.context["possibly_executed"]) == (False, False)


async def test_a_cut_answer_may_have_been_executed_which_its_letter_says(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=[0]) as gateway:
        error = await exhausted(gateway, desk, CUT, CUT)
        letter = (await desk.letter()).letter

    assert (error.possibly_executed, error.code) == (True, None)
    assert (letter.context["possibly_executed"], letter.error_code) == (True, "possibly_executed")


async def test_a_letter_knows_that_an_earlier_attempt_may_have_been_executed(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=[0]) as gateway:
        error = await exhausted(gateway, desk, CUT, say(503))
        letter = (await desk.letter()).letter

    assert (error.possibly_executed, error.status_code) == (True, 503)
    assert (letter.context["possibly_executed"], letter.error_code) == (True, "503")


async def test_what_is_no_answer_is_in_the_letter(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=[0]) as gateway:
        error = await exhausted(gateway, desk, HTML, HTML)
        letter = (await desk.letter()).letter

    assert isinstance(error.last, BadAnswer)
    assert error.last.answer == "<html>busy</html>"
    assert letter.context["answer"] == "<html>busy</html>"


async def test_an_answer_that_was_too_large_may_have_been_executed_before(file: str) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=[0], max_answer_bytes=400) as gateway:
        desk.server.plan(say(200, good("hello" * 100)))

        assert (await gateway.ask(a_request())).possibly_executed


async def test_the_metadata_of_a_request_is_in_its_letter(file: str) -> None:
    metadata = {"run": 7, "password": "sesame", "model": "another"}
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=0) as gateway:
        desk.server.plan(say(503))
        with pytest.raises(RetriesExhausted):
            await gateway.ask(a_request(metadata=metadata))
        context = (await desk.letter()).letter.context

    assert (context["run"], context["password"], context["model"]) == (7, "***", "fast")


class Shaky:
    """Answers that are away for a while: so many times nothing can be put there."""

    def __init__(self, answers: Answers, *, faults: int) -> None:
        self._answers = answers
        self.faults = faults

    async def put(self, request_id: str, answer: bytes) -> None:
        if self.faults:
            self.faults -= 1
            raise ConnectionResetError("away")
        await self._answers.put(request_id, answer)

    async def get(self, request_id: str) -> bytes | None:
        return await self._answers.get(request_id)

    async def aclose(self) -> None:
        await self._answers.aclose()


@asynccontextmanager
async def shaky(desk: Desk, *, faults: int) -> AsyncIterator[Gateway]:
    """A gateway whose answers are kept in such a place."""
    broker = connect(desk.url)
    answers = Shaky(answers_of(broker), faults=faults)
    models = {"fast": ModelConfig(base_url=desk.server.url, model_name="model-1")}
    outside = Outside(answers=answers)
    async with Gateway(models, policy=[0], broker=broker, outside=outside) as gateway, answering(gateway):
        yield gateway
    await answers.aclose()
    await broker.aclose()


async def test_an_answer_that_cannot_be_kept_at_once_is_kept_soon_and_not_paid_for_twice(file: str) -> None:
    async with a_desk(file) as desk, shaky(desk, faults=3) as gateway:
        answer = await gateway.ask(a_request())

    assert (answer.attempts, answer.possibly_executed, len(desk.server.visits)) == (1, False, 1)


async def test_an_answer_that_could_not_be_kept_is_asked_for_again_and_says_so(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "AGAIN", ())
    async with a_desk(file) as desk, shaky(desk, faults=1) as gateway:
        answer = await gateway.ask(a_request())

    assert (answer.attempts, answer.possibly_executed, len(desk.server.visits)) == (2, True, 2)


async def test_the_letter_of_an_answer_that_could_not_be_kept_says_that_it_was_executed(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "AGAIN", ())
    async with a_desk(file) as desk, shaky(desk, faults=2) as gateway:
        error = await exhausted(gateway, desk)
        letter = (await desk.letter()).letter

    assert (error.possibly_executed, letter.context["possibly_executed"]) == (True, True)
    assert letter.error_message == "the answer could not be kept"


async def test_the_rows_of_failures_say_what_those_of_a_gateway_in_memory_say(file: str, tmp_path: Path) -> None:
    refusal = say(503, headers={"x-request-id": "their-1", "Retry-After": "0"})
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=[0], log_dir=tmp_path) as gateway:
        await exhausted(gateway, desk, CUT, refusal)

    (retry,), (error,) = rows(tmp_path, "retries"), rows(tmp_path, "errors")
    names = ("status", "error_type", "error", "http_status", "possibly_executed", "provider_request_id")
    assert [retry[name] for name in names] == ["retry", "TransportFault", "TransportFault", None, True, ""]
    assert [error[name] for name in names] == ["error", "RetriesExhausted", "ServerFault", 503, True, "their-1"]
    assert (retry["told_ms"], retry["delay_ms"], error["attempt"]) == (None, 0, 2)


async def test_a_long_pause_is_spent_in_the_brokers_due_index_and_the_journal_says_postponed(
    file: str, tmp_path: Path
) -> None:
    async with a_desk(file) as desk:
        async with at_work(desk.url, desk.server.url, log_dir=tmp_path) as gateway:
            desk.server.plan(say(429, headers={"Retry-After": "120"}))
            await gateway.submit(a_request())
            while not (depth := await desk.broker.depth("llm.fast", group="gateway")).scheduled:  # noqa: ASYNC110 - put there by the worker
                await asyncio.sleep(0.02)

            assert (depth.scheduled, depth.in_flight, depth.waiting, depth.dead) == (1, 0, 0, 0)
            assert gateway.stats()["fast"].in_flight == 0

        (row,) = rows(tmp_path, "retries")
        assert (row["status"], row["http_status"], row["told_ms"]) == ("postponed", 429, 120_000)
        assert row["delay_ms"] >= 120_000


async def test_an_outage_that_opens_the_breaker_costs_time_and_no_letter(file: str, tmp_path: Path) -> None:
    async with a_desk(file) as desk, at_work(desk.url, desk.server.url, retry=[0.5] * 3, log_dir=tmp_path) as gateway:
        desk.server.rule = lambda _: say(503)
        futures = await gateway.submit_many(some(40))
        while gateway.stats()["fast"].breaker is None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        desk.server.rule = lambda _: say()

        assert {(await future).text for future in futures} == {"hello"}
        assert gateway.stats()["fast"].breaker is None
        assert await desk.broker.dead_letters("llm.fast").length() == 0

    assert any(row["status"] == "held" for row in rows(tmp_path, "retries"))
