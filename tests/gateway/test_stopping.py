"""A gateway that is told to stop: what was sent is waited for, what was not is handed back at once."""

import asyncio
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from redrive import wiring
from redrive.clock import SystemClock
from redrive.gateway import Gateway, ModelConfig
from redrive.gateway.front_door import FrontDoor
from tests.gateway.desk import a_desk
from tests.gateway.durable_worker import at_work
from tests.gateway.fault_server import PATIENCE, FaultServer, Visit, refuse, say
from tests.gateway.theatre import a_request, some


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/llm.db"
    return str(request.getfixturevalue("fresh_redis").url)


@pytest.fixture(autouse=True)
def much_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for it to pass waits longer than a test may take."""
    monkeypatch.setattr(wiring.gateway, "GRACE", timedelta(hours=1))


async def until_queued(gateway: Gateway, count: int) -> None:
    while gateway.stats()["fast"].queued < count:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)


async def test_what_waits_at_a_gate_is_handed_back_without_spending_an_attempt(url: str) -> None:
    async with a_desk(url) as desk:
        desk.server.plan(refuse(429, "busy", {"Retry-After": "50"}))
        async with at_work(desk.url, desk.server.url, concurrency=8) as gateway:
            await desk.gateway.submit(a_request("first"))
            await desk.server.arrived(1)
            while gateway.stats()["fast"].closed_until is None:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
            await desk.gateway.submit_many(some(5))
            await until_queued(gateway, 5)

        async with at_work(desk.url, desk.server.url):
            answers = [await desk.gateway.result(f"r{number}") for number in range(5)]

        assert [(answer.attempts, answer.possibly_executed) for answer in answers] == [(1, False)] * 5
        assert len(desk.server.visits) == 6


async def test_what_was_sent_is_waited_for(url: str) -> None:
    async with a_desk(url) as desk:
        go = asyncio.Event()

        async def slowly(visit: Visit) -> None:
            await go.wait()
            await say()(visit)

        desk.server.rule = lambda _: slowly
        opened = at_work(desk.url, desk.server.url, concurrency=1)
        gateway = await opened.__aenter__()
        await desk.gateway.submit_many(some(2))
        await desk.server.arrived(1)
        stopping = asyncio.create_task(opened.__aexit__(None, None, None))
        await asyncio.sleep(0)
        assert not stopping.done()
        go.set()
        await stopping

        (sent,) = {visit.said for visit in desk.server.visits}
        assert (await desk.gateway.result(sent)).text == "hello"
        assert gateway.stats()["fast"].in_flight == 0


async def test_a_door_that_closes_ends_at_once_what_was_not_sent() -> None:
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE), httpx2.AsyncClient() as client:
        server.rule = lambda _: refuse(429, "busy", {"Retry-After": "50"})
        models = {"fast": ModelConfig(base_url=server.url, model_name="model-1")}
        async with Gateway(models) as gateway:
            async with FrontDoor(gateway, port=0) as door:
                body = {"model": "fast", "messages": [{"role": "user", "content": "hi"}]}
                asking = [
                    asyncio.create_task(client.post(f"{door.url}/chat/completions", json=body, timeout=PATIENCE))
                    for _ in range(3)
                ]
                await server.arrived(3)
                while (stats := gateway.stats()["fast"]).waiting < 3:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.01)
                assert stats.closed_until is not None
            answers = await asyncio.gather(*asking)

        assert [(answer.status_code, answer.json()["error"]["type"]) for answer in answers] == [
            (503, "GatewayClosed")
        ] * 3
