"""Scenarios 12 and 13: accepted requests outlive their process, and letters of requests are redriven."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from redrive import connect
from redrive.brokers.sqlite.answers import SqliteAnswers
from redrive.clock import SystemClock
from redrive.core.ports import Broker, DeadEntry
from redrive.core.reason import Reason
from redrive.gateway import LLMRequest
from redrive.gateway.durable import DurableGateway
from tests.gateway.durable_worker import at_work
from tests.gateway.fault_server import PATIENCE, FaultServer, Visit, say
from tests.gateway.theatre import a_request, some

ROOT = Path(__file__).parents[2]
CLOCK = SystemClock()


@dataclass
class Desk:
    """Where requests are submitted and answers fetched, apart from the worker; and the provider that it asks."""

    gateway: DurableGateway
    broker: Broker
    server: FaultServer
    url: str
    answers: Path

    async def letter(self) -> DeadEntry:
        """The first letter, waited for."""
        while not (entries := await self.broker.dead_letters("llm.fast").peek()):  # noqa: ASYNC110 - written elsewhere
            await asyncio.sleep(0.02)
        return entries[0]

    def start(self) -> subprocess.Popen[bytes]:
        """A worker in a process of its own."""
        command = [sys.executable, "-m", "tests.gateway.durable_worker", self.url, str(self.answers), self.server.url]
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


@asynccontextmanager
async def a_desk(tmp_path: Path) -> AsyncIterator[Desk]:
    url, path = f"sqlite:///{tmp_path}/llm.db", tmp_path / "answers.db"
    broker, answers = connect(url), SqliteAnswers(path, clock=CLOCK)
    async with FaultServer(CLOCK) as server, asyncio.timeout(3 * PATIENCE):
        yield Desk(DurableGateway(broker, answers, clock=CLOCK), broker, server, url, path)
    await broker.aclose()
    await answers.aclose()


async def test_a_request_is_answered_by_a_worker_and_picked_up_by_its_id(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        desk.server.plan(say(500))
        assert await desk.gateway.submit(a_request()) == "r1"
        assert await desk.gateway.answer("r1") is None
        async with at_work(desk.url, desk.answers, desk.server.url, retry=[0]):
            response = await desk.gateway.result("r1")

        assert (response.text, response.attempts, response.usage) == ("hello", 2, (6, 6))


async def test_a_request_that_was_answered_is_not_sent_again(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        async with at_work(desk.url, desk.answers, desk.server.url):
            await desk.gateway.submit(a_request())
            first = await desk.gateway.result("r1")
            await desk.gateway.submit_many([a_request(), a_request("r2")])
            await desk.gateway.result("r2")

        assert await desk.gateway.answer("r1") == first
        assert Counter(visit.said for visit in desk.server.visits) == {"r1": 1, "r2": 1}


async def test_13_an_exhausted_request_is_a_letter_that_can_be_redriven(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk, at_work(desk.url, desk.answers, desk.server.url, retry=[0]):
        desk.server.rule = lambda _: say(500)
        await desk.gateway.submit(a_request())
        entry = await desk.letter()
        letter = entry.letter
        assert (letter.reason, letter.error_type) == (Reason.ATTEMPTS_EXHAUSTED, "redrive.ServerFault")
        assert letter.context == {"agent_id": "planner", "model": "fast"}
        assert letter.payload is not None
        assert LLMRequest.from_json(letter.payload) == a_request()

        desk.server.rule = lambda _: say()
        await desk.broker.dead_letters("llm.fast").redrive(entry.entry_id)
        assert (await desk.gateway.result("r1")).text == "hello"


async def test_a_rejected_request_is_a_letter_after_one_attempt(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk, at_work(desk.url, desk.answers, desk.server.url):
        desk.server.rule = lambda _: say(422)
        await desk.gateway.submit(a_request())
        letter = (await desk.letter()).letter

        assert (letter.reason, letter.error_type, letter.retry_count) == (
            Reason.REJECTED,
            "redrive.RequestRejected",
            1,
        )
        assert len(desk.server.visits) == 1


async def test_a_request_whose_deadline_has_passed_is_a_letter_and_is_not_sent(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        await desk.gateway.submit(a_request(deadline=0.001))
        await asyncio.sleep(0.002)
        async with at_work(desk.url, desk.answers, desk.server.url):
            letter = (await desk.letter()).letter

        assert letter.reason is Reason.DEADLINE
        assert desk.server.visits == []


async def test_what_is_no_request_is_a_letter(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk, at_work(desk.url, desk.answers, desk.server.url) as app:
        await app.publish("llm.fast", {"what": "is this"})

        assert (await desk.letter()).letter.reason is Reason.REJECTED


async def test_nobody_waits_for_an_answer_without_end(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as desk:
        try:
            await desk.gateway.result("never", within=0.05)
        except TimeoutError as error:
            assert "never" in str(error)  # noqa: PT017 - TimeoutError is also what ends the whole test
        else:
            raise AssertionError


async def test_12_accepted_requests_survive_kill_9(tmp_path: Path) -> None:
    count = 120
    async with a_desk(tmp_path) as desk:
        names = await desk.gateway.submit_many(some(count))
        killed = 0
        process = desk.start()

        def now_and_then(visit: Visit) -> object:
            return say(500) if visit.number % 17 == 0 else say()

        desk.server.rule = now_and_then  # type: ignore[assignment]
        try:
            for seen in (20, 60):
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
        in_flight = 16 * killed  # handlers that ran: asked, or answered and not yet kept
        assert set(sent) == {*names}
        assert sum(sent.values()) <= count + failed + in_flight
        assert await desk.broker.dead_letters("llm.fast").length() == 0
