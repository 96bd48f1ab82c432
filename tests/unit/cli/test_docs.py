import re
from pathlib import Path

from redrive.cli import app
from redrive.cli.output import Exit
from redrive.config import Settings, load_settings
from redrive.config.keys import KEYS, variable

DOCS = (Path(__file__).parents[3] / "docs" / "commands.md").read_text("utf-8")


def test_the_page_on_commands_shows_every_command() -> None:
    names = {name for name in app if not name.startswith("-")}

    assert names == set(re.findall(r"redrive (\w+)", DOCS)) & names


def test_the_page_on_commands_says_every_exit_status() -> None:
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", DOCS, re.MULTILINE)] == list(Exit)


def test_the_page_on_commands_says_every_setting_and_its_default() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| `(\w+)` \| (none|`[^`]+`) \|", DOCS, re.MULTILINE)

    assert [(key, name) for key, name, _ in rows] == [(key, variable(key)) for key in KEYS]
    said = {name: default.strip("`") for _, name, default in rows if default != "none"}
    assert load_settings(said) == Settings()
