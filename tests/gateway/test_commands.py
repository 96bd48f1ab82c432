"""`redrive gateway`, before a real server."""

import asyncio
import json
import os
import signal
from pathlib import Path

import httpx2
import pytest

from redrive import ConfigError, connect, wiring
from redrive.cli import gateway as commands
from redrive.cli.output import Exit
from redrive.clock import SystemClock
from redrive.core.reason import Reason
from redrive.gateway.durable import DurableGateway, answers_of
from tests.gateway.fault_server import PATIENCE, FaultServer, Visit, say
from tests.gateway.test_traced import Spans
from tests.gateway.theatre import a_request
from tests.servers.ports import free_port


def a_models_file(folder: Path, server: FaultServer) -> Path:
    path = folder / "models.toml"
    path.write_text(f'[models.fast]\nbase_url = "{server.url}"\nmodel_name = "model-1"\n')
    return path


async def test_a_file_of_requests_is_run_and_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    rows = [{"request_id": name, "messages": [{"role": "user", "content": name}]} for name in ("good", "bad")]
    requests.write_text("".join(json.dumps(row) + "\n" for row in rows))
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE):
        at = commands.Models(models=a_models_file(tmp_path, server), log_dir=tmp_path / "logs")
        server.rule = lambda visit: say(422 if visit.said == "bad" else 200)
        assert await commands.run(requests, model="fast", output=answers, at=at) == Exit.NO
        assert "1 of 2 answered, 1 failed" in capsys.readouterr().out

        server.rule = lambda _: say()
        assert await commands.run(requests, model="fast", output=answers, at=at) == Exit.OK
        assert "2 of 2 answered, 0 failed" in capsys.readouterr().out

    assert [visit.said for visit in server.visits].count("good") == 1
    assert (tmp_path / "logs" / "gateway" / "responses.jsonl").read_text().count("\n") == 2


async def test_letters_of_a_run_go_to_the_broker_that_is_named(tmp_path: Path) -> None:
    requests, url = tmp_path / "requests.jsonl", f"sqlite:///{tmp_path}/llm.db"
    requests.write_text('{"messages": [{"role": "user", "content": "hi"}], "deadline": 0.2}\n')
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE):
        server.rule = lambda _: say(500)
        at = commands.Models(models=a_models_file(tmp_path, server), broker=url)
        await commands.run(requests, model="fast", output=tmp_path / "answers.jsonl", at=at)
    broker = connect(url)
    (entry,) = await broker.dead_letters("llm.fast").peek()
    await broker.aclose()

    assert (entry.letter.kind, entry.letter.reason) == ("llm", Reason.DEADLINE)
    assert entry.letter.context["agent_id"] == "file"


async def test_the_front_door_is_open_until_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE), httpx2.AsyncClient() as client:
        at = commands.Models(models=a_models_file(tmp_path, server), json=True)
        serving = asyncio.create_task(commands.serve(port=0, at=at))
        url = json.loads(await _told(capsys))["url"]
        body = {"model": "fast", "messages": [{"role": "user", "content": "hi"}]}
        answer = await client.post(f"{url}/chat/completions", json=body)
        assert answer.json()["choices"][0]["message"]["content"] == "hello"

        os.kill(os.getpid(), signal.SIGTERM)
        await serving


async def test_with_a_broker_the_front_door_is_seen_and_answers_what_is_redriven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/llm.db"
    broker = connect(url)
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE), httpx2.AsyncClient() as client:
        at = commands.Models(models=a_models_file(tmp_path, server), broker=url, json=True)
        serving = asyncio.create_task(commands.serve(port=0, at=at))
        door = json.loads(await _told(capsys))["url"]
        server.rule = lambda _: say(500)
        body = {"model": "fast", "messages": [{"role": "user", "content": "hi"}]}
        headers = {"X-Request-Id": "r1", "X-Deadline": "200ms"}
        answer = await client.post(f"{door}/chat/completions", json=body, headers=headers)
        assert answer.status_code == 504

        server.rule = lambda _: say()
        (entry,) = await broker.dead_letters("llm.fast").peek()
        await broker.dead_letters("llm.fast").redrive(entry.entry_id)
        answers = answers_of(broker)
        assert (await DurableGateway(broker, answers, clock=SystemClock()).result("r1")).text == "hello"
        while not (state := (await broker.alive("llm.fast", group="gateway"))[0].state):  # noqa: ASYNC110 - told elsewhere
            await asyncio.sleep(0.05)
        told = json.loads(state)
        assert (told["gateway"], told["most"], told["breaker"]) == ("fast", 64, None)

        os.kill(os.getpid(), signal.SIGTERM)
        await serving
        await answers.aclose()
    await broker.aclose()


async def test_the_front_door_and_its_worker_are_counted_on_one_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, page = f"sqlite:///{tmp_path}/llm.db", free_port()
    broker = connect(url)
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE), httpx2.AsyncClient() as client:
        at = commands.Models(models=a_models_file(tmp_path, server), broker=url, metrics_port=page, json=True)
        serving = asyncio.create_task(commands.serve(port=0, at=at))
        door = json.loads(await _told(capsys))["url"]

        async def shown(line: str) -> None:
            while line not in (await client.get(f"http://127.0.0.1:{page}/metrics")).text:  # noqa: ASYNC110 - asked for
                await asyncio.sleep(0.05)

        own = 'broker="",group="gateway"'
        server.rule = lambda _: say(503)
        body = {"model": "fast", "messages": [{"role": "user", "content": "hi"}]}
        asking = [
            asyncio.create_task(client.post(f"{door}/chat/completions", json=body, timeout=PATIENCE)) for _ in range(25)
        ]
        await shown(f'redrive_consumer_paused{{{own},queue="llm.fast"}} 1.0')
        server.rule = lambda _: say()
        assert {answer.status_code for answer in await asyncio.gather(*asking)} == {200}
        await shown(f'redrive_consumer_paused{{{own},queue="llm.fast"}} 0.0')
        await shown(f'redrive_settled_total{{{own},outcome="acked",queue="llm.fast"}} 25.0')

        answers = answers_of(broker)
        await DurableGateway(broker, answers, clock=SystemClock()).submit(a_request())
        await shown('redrive_settled_total{broker="sqlite",group="gateway",outcome="acked",queue="llm.fast"} 1.0')

        os.kill(os.getpid(), signal.SIGTERM)
        await serving
        await answers.aclose()
    await broker.aclose()


async def test_a_run_is_counted_and_traced_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests, page, spans = tmp_path / "requests.jsonl", free_port(), Spans()
    requests.write_text('{"messages": [{"role": "user", "content": "hi"}]}\n')
    monkeypatch.setattr(wiring, "tracing", lambda _: spans.tracing)
    seen = ""
    async with FaultServer(SystemClock()) as server, asyncio.timeout(PATIENCE), httpx2.AsyncClient() as client:

        async def look(visit: Visit) -> None:
            nonlocal seen
            seen = (await client.get(f"http://127.0.0.1:{page}/metrics")).text
            await say()(visit)

        server.plan(say(500), look)
        at = commands.Models(models=a_models_file(tmp_path, server), metrics_port=page, tracing=True)
        assert await commands.run(requests, model="fast", output=tmp_path / "answers.jsonl", at=at) == Exit.OK

    assert (
        'redrive_retries_total{broker="",error_type="redrive.ServerFault",group="gateway",queue="llm.fast"} 1.0' in seen
    )
    assert [name for name, _ in spans.names] == ["publish llm.fast", "process llm.fast", "process llm.fast"]


async def test_a_port_for_metrics_that_is_taken_is_a_mistake(tmp_path: Path) -> None:
    async with FaultServer(SystemClock()) as server:
        taken = int(server.url.rpartition(":")[2].removesuffix("/v1"))
        at = commands.Models(models=a_models_file(tmp_path, server), metrics_port=taken)
        with pytest.raises(ConfigError, match="--metrics-port"):
            await commands.serve(port=0, at=at)


async def _told(capsys: pytest.CaptureFixture[str]) -> str:
    """The line that a command prints once it is at work."""
    out = ""
    while not (out := out + capsys.readouterr().out).endswith("\n"):  # noqa: ASYNC110 - printed, not told
        await asyncio.sleep(0.01)
    return out
