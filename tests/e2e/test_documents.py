"""The README and the tutorial are read by newcomers, who type what stands there."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"


def files(document: Path) -> dict[str, str]:
    """The programs of a document: Python blocks whose first line names a file."""
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", document.read_text(), re.DOTALL)
    return dict(blocks)


def commands(document: Path) -> list[str]:
    """What is typed in a document, without the comments behind it."""
    lines = re.findall(r"^\$ (.*)$", document.read_text(), re.MULTILINE)
    return [line.partition(" #")[0].strip() for line in lines]


class Folder:
    def __init__(self, path: Path, document: Path) -> None:
        self.path = path
        bin_folder = Path(sys.executable).parent
        self.environment = {
            **os.environ,
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "REDRIVE_BROKER": "sqlite:///shop.db",
        }
        for name, text in files(document).items():
            (path / name).write_text(text)

    def run(self, command: str) -> str:
        done = subprocess.run(
            shlex.split(command),
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def run_until_dead(self, command: str, *, letters: int) -> str:
        process = subprocess.Popen(
            shlex.split(command), cwd=self.path, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        ends = time.monotonic() + 60
        while int(self.run("redrive dlq length --queue orders").split()[-1]) < letters:
            assert time.monotonic() < ends, "the letters did not come in time"
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        return said


def test_the_first_program_of_the_readme_does_what_it_says(tmp_path: Path) -> None:
    folder = Folder(tmp_path, README)
    typed = [command for command in commands(README) if not command.startswith("make")]
    assert [shlex.split(command)[:2] for command in typed] == [
        ["redrive", "publish"],
        ["redrive", "publish"],
        ["python", "first.py"],
        ["redrive", "dlq"],
        ["redrive", "dlq"],
    ]

    for command in typed[:2]:
        folder.run(command)
    assert "charging Ada with key orders:" in folder.run_until_dead(typed[2], letters=1)

    assert "no customer" in folder.run(typed[3])
    assert "1" in folder.run(typed[4])


def test_the_commands_of_the_tutorial_do_what_it_says(tmp_path: Path) -> None:
    folder = Folder(tmp_path, TUTORIAL)
    said = {}
    for command in commands(TUTORIAL):
        if command == "python first.py":
            said[command] = folder.run_until_dead(command, letters=2)
        else:
            said[command] = folder.run(command if "worker" not in command else "redrive worker --help")

    assert "charging Ada" in said["python first.py"]
    assert "invalid" in said["redrive dlq peek --queue orders"]
    assert "2" in said["redrive dlq redrive --queue orders --all --yes"]


def test_the_test_of_the_tutorial_passes(tmp_path: Path) -> None:
    folder = Folder(tmp_path, TUTORIAL)
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )

    said = folder.run("python -m pytest -q -p anyio -o anyio_mode=auto test_first.py")

    assert "1 passed" in said
