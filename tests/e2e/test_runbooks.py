"""The commands of every runbook, carried out where a message has died: look, then mend, act and verify."""

import json
import logging
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.cli import run
from tests.e2e.serving import Shop, until

RUNBOOKS = {path.stem: path.read_text("utf-8") for path in (Path(__file__).parents[2] / "docs/runbooks").glob("*.md")}
OWN = RUNBOOKS.keys() - {"provider-outage"}  # carried out beside the gateway
PARTS = ("Meaning", "Look", "Act", "Verify")

APP = """
import os
import redrive

app = redrive.App(os.environ["SHOP_BROKER"], name="shop", grace=5)


@app.consumer("orders", retry=0, breaker=None)
async def charge(order: dict[str, object]) -> None:
    if not os.path.exists("mended"):
        raise type(str(order.get("dies_of")), (Exception,), {})
"""


class Stage(Shop):
    """A shop with one dead letter at a time, whose commands run in this process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, SHOP_BROKER=f"sqlite:///{folder}/redrive.db", REDRIVE_LOG_LEVEL="error")
        self.env |= {"REDRIVE_BROKER": self.env["SHOP_BROKER"], "REDRIVE_STORE": f"sqlite:///{folder}/letters.db"}
        (folder / "first.py").write_text(APP, "utf-8")
        self.mended = folder / "mended"

    def say(self, command: str, capsys: pytest.CaptureFixture[str]) -> str:
        capsys.readouterr()
        handlers, level = [*logging.root.handlers], logging.root.level
        program, *tokens = shlex.split(command)
        status = run(tokens)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
        said = capsys.readouterr()
        assert (program, status) == ("redrive", 0), f"{command}: {status}\n{said.out}{said.err}"
        return said.out

    def first(self, command: str, name: str, capsys: pytest.CaptureFixture[str]) -> str:
        lines = self.say(f"{command} --json", capsys).splitlines()
        return str(json.loads(lines[0])[name]) if lines else ""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    shop = Stage(tmp_path_factory.mktemp("stage"))
    shop.run("publish", "orders", "{}")
    with shop.process("worker", "first:app"):
        until((shop.folder / "letters.db").exists, what="the collector begins")
        yield shop


def commands(text: str, part: str) -> list[str]:
    """The commands under a heading."""
    section = text.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
    return [line for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_runbook_says_what_it_means_where_to_look_what_to_do_and_how_to_verify(name: str) -> None:
    assert tuple(re.findall(r"^## (.*)$", RUNBOOKS[name], re.MULTILINE)) == PARTS
    assert commands(RUNBOOKS[name], "Look")
    assert commands(RUNBOOKS[name], "Verify")


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_runbook_is_carried_out(
    name: str, stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stage.folder)
    for variable, value in stage.env.items():
        monkeypatch.setenv(variable, value)
    stage.mended.unlink(missing_ok=True)
    dies_of = name.title().replace("-", "")
    stage.say(f"redrive publish orders '{json.dumps({'dies_of': dies_of})}'", capsys)
    mine = f"redrive letters list --text {dies_of}"
    until(lambda: bool(stage.first(mine, "letter_id", capsys)), what="a letter is collected")
    names = {
        "INCIDENT": stage.first("redrive incidents", "incident_id", capsys),
        "LETTER": stage.first(mine, "letter_id", capsys),
    }
    for part in PARTS:
        if part == "Act":
            stage.mended.touch()
        for command in commands(RUNBOOKS[name], part):
            stage.say(re.sub("INCIDENT|LETTER", lambda found: names[found[0]], command), capsys)

    done = " ".join(commands(RUNBOOKS[name], "Act"))
    if "letters redrive" in done:
        until(lambda: not stage.first(mine, "letter_id", capsys), what="the letter is resolved")
    if "letters discard" in done:
        assert stage.first(f"{mine} --state discarded", "letter_id", capsys) == names["LETTER"]
