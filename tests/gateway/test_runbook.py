"""The runbook of a provider's outage, carried out."""

import asyncio
import os
import re
import sys
from pathlib import Path

from tests.gateway.desk import a_desk
from tests.gateway.durable_worker import at_work
from tests.gateway.fault_server import say
from tests.gateway.theatre import some

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbooks" / "provider-outage.md"


def steps() -> list[list[str]]:
    """The commands of each step."""
    blocks = re.findall(r"```console\n(.*?)```", RUNBOOK.read_text(encoding="utf-8"), re.DOTALL)
    return [block.splitlines() for block in blocks]


async def carry_out(command: str, **environment: str) -> str:
    program, *arguments = command.split()
    assert program == "redrive"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "redrive.cli", *arguments),
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, f"{command}: {out.decode()}"
    return out.decode()


async def test_the_runbook_brings_every_answer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/llm.db"
    async with a_desk(url) as desk, at_work(desk.url, desk.server.url, retry=[0, 0]):
        place = {"REDRIVE_BROKER": desk.url, "REDRIVE_STORE": f"sqlite:///{tmp_path}/letters.db"}
        desk.server.rule = lambda _: say(503)
        names = await desk.gateway.submit_many(some(4))
        while await desk.broker.dead_letters("llm.fast").length() < len(names):  # noqa: ASYNC110 - written elsewhere
            await asyncio.sleep(0.02)
        look, send, check = steps()

        shown = [await carry_out(command, **place) for command in look]
        assert "llm.fast" in shown[0]
        assert "ServerFault" in shown[2]
        assert shown[3].count("ServerFault") >= len(names)

        desk.server.rule = lambda _: say()
        preview, done = [await carry_out(command, **place) for command in send]
        assert "4" in preview
        assert "4 resolved, 0 unconfirmed" in done
        assert [(await desk.gateway.result(name)).text for name in names] == ["hello"] * 4

        left = [await carry_out(command, **place) for command in check]
        assert "ServerFault" not in left[0]
        assert left[1].strip() == "0"
