"""`redrive gateway`, before a real server."""

import asyncio
import json
import os
import signal
from pathlib import Path

import httpx2
import pytest

from redrive import connect
from redrive.cli import gateway as commands
from redrive.cli.output import Exit
from redrive.clock import SystemClock
from redrive.core.reason import Reason
from redrive.gateway.durable import DurableGateway, answers_of
from tests.gateway.fault_server import PATIENCE, FaultServer, say


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
        out = ""
        while not (out := out + capsys.readouterr().out).endswith("\n"):  # noqa: ASYNC110 - printed, not told
            await asyncio.sleep(0.01)
        url = json.loads(out)["url"]
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
        out = ""
        while not (out := out + capsys.readouterr().out).endswith("\n"):  # noqa: ASYNC110 - printed, not told
            await asyncio.sleep(0.01)
        server.rule = lambda _: say(500)
        body = {"model": "fast", "messages": [{"role": "user", "content": "hi"}]}
        headers = {"X-Request-Id": "r1", "X-Deadline": "200ms"}
        answer = await client.post(f"{json.loads(out)['url']}/chat/completions", json=body, headers=headers)
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
