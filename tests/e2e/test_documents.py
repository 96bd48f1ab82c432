"""The README, the tutorial and the page on Redis are read by newcomers, who type what stands there."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.ports import free_port

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
REDIS = ROOT / "docs" / "adapters" / "redis.md"
LOCAL = "redis://localhost:6379"


def files(document: Path) -> dict[str, str]:
    """The programs of a document: Python blocks whose first line names a file."""
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", document.read_text(), re.DOTALL)
    return dict(blocks)


def commands(document: Path) -> list[str]:
    """What is typed in a document, without the comments behind it."""
    lines = re.findall(r"^\$ (.*)$", document.read_text(), re.MULTILINE)
    return [line.partition(" #")[0].strip() for line in lines]


class Folder:
    """An empty folder with the programs of a document, in which its commands are typed."""

    def __init__(self, path: Path, document: Path, *, broker: str = "sqlite:///shop.db") -> None:
        self.path = path
        bin_folder = Path(sys.executable).parent
        self.environment = {
            **os.environ,
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "REDRIVE_BROKER": broker,
        }
        for name, text in files(document).items():
            (path / name).write_text(text.replace(LOCAL, broker))

    def run(self, command: str, *, status: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == status, (command, done.stdout, done.stderr)
        return done.stdout

    @contextlib.contextmanager
    def running(self, command: str) -> Iterator[Path]:
        """A program in the first terminal, while the second one is used; gives the file with what it prints."""
        output = self.path / "output.txt"
        with output.open("w") as stdout:
            process = subprocess.Popen(shlex.split(command), cwd=self.path, env=self.environment, stdout=stdout)
            try:
                yield output
            finally:
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0

    def wait_for_letters(self, count: int) -> None:
        until(lambda: (self.path / "letters.db").exists() and self.letters() >= count, what="the letters come")

    def letters(self) -> int:
        return len(self.run("redrive letters list --json").splitlines())


def until(true: Callable[[], bool], *, what: str) -> None:
    ends = time.monotonic() + 60
    while not true():
        assert time.monotonic() < ends, f"not in time: {what}"
        time.sleep(0.2)


FIX = 'raise redrive.GiveUp("no customer", code="no_customer")', "return"


def test_the_first_program_of_the_readme_does_what_it_says(tmp_path: Path) -> None:
    folder = Folder(tmp_path, README)
    typed = [command for command in commands(README) if not command.startswith(("make", "export"))]
    typed, service = typed[:6], typed[6:]
    assert [shlex.split(command)[0] for command in typed] == ["redrive", "printf", "python", *["redrive"] * 3]
    assert [shlex.split(command)[0] for command in service] == ["redrive", "redis-cli", "curl", "redrive"]

    for command in typed[:2]:
        folder.run(command)
    with folder.running(typed[2]) as output:
        folder.wait_for_letters(3)
        assert "no customer" in folder.run(typed[3])
        assert "no customer" in folder.run(typed[4])
        said = folder.run(typed[5], status=1)
    assert said.splitlines()[-1] in README.read_text()
    assert "same failure" in said
    assert "charging Ada with key orders:" in output.read_text()

    program = tmp_path / "first.py"
    program.write_text(program.read_text().replace(*FIX))
    with folder.running(typed[2]):
        said = folder.run(typed[5])
    assert said.splitlines()[-1] in README.read_text()
    assert "3 resolved, 0 unconfirmed" in said


def test_the_service_of_the_readme_does_what_it_says(tmp_path: Path, empty_redis: str) -> None:
    folder = Folder(tmp_path, README)
    places = {"redis://127.0.0.1:6379": empty_redis, "redis-cli": f"redis-cli -u {empty_redis}"}
    places["http://127.0.0.1:8800"] = f"http://127.0.0.1:{(port := free_port())}"
    typed = commands(README)[-4:]
    for name, place in places.items():
        typed = [command.replace(name, place) for command in typed]

    with folder.running(f"{typed[0]} --port {port}") as output:
        until(lambda: "redrive serves on" in output.read_text(), what="the service listens")
        folder.run(typed[1])
        until(lambda: "KeyError" in folder.run(typed[2]), what="the letter is shown")
        assert "would redrive 1 letter" in folder.run(typed[3])


def test_the_commands_of_the_tutorial_do_what_it_says(tmp_path: Path) -> None:
    folder = Folder(tmp_path, TUTORIAL)
    typed = commands(TUTORIAL)
    start = typed.index("python first.py")
    for command in typed[:start]:
        folder.run(command)

    said = {}
    with folder.running(typed[start]) as output:
        folder.wait_for_letters(2)
        for command in typed[start + 1 :]:
            if "worker" in command:
                folder.run("redrive worker --help")
            else:
                said[command] = folder.run(command, status=1 if "--canary" in command else 0)

    assert "charging Ada" in output.read_text()
    assert "invalid" in said["redrive letters list"]
    assert "would redrive 2 letters" in said["redrive letters redrive --all"]
    assert "failed the same way" in said["redrive letters redrive --all --canary 1 --yes"]


def test_the_test_of_the_tutorial_passes(tmp_path: Path) -> None:
    folder = Folder(tmp_path, TUTORIAL)

    said = folder.run("python -m pytest -q test_first.py")

    assert "1 passed" in said


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not installed")
def test_the_commands_of_the_page_on_redis_do_what_it_says(tmp_path: Path, empty_redis: str) -> None:
    folder = Folder(tmp_path, REDIS, broker=empty_redis)
    added, worker, look, peek, back, *rest = [
        command.replace("redis-cli", f"redis-cli -u {empty_redis}") for command in commands(REDIS)
    ]
    folder.run(added)
    with folder.running(worker):
        ends = time.monotonic() + 60
        while "no_customer" not in (entry := folder.run(look)):
            assert time.monotonic() < ends, "the letter did not come in time"
            time.sleep(0.2)
        peeked = folder.run(peek)
        redriven = folder.run(back)
        while "generation" not in folder.run(look):
            assert time.monotonic() < ends, "the letter did not come back in time"
            time.sleep(0.2)
        said = [folder.run(command, status=1 if "doctor" in command else 0) for command in rest]

    for name in (
        "payload",
        "original_message_id",
        "error_type",
        "error_message",
        "retry_count",
        "failed_at",
        "user_id",
    ):
        assert f"\n{name}\n" in f"\n{entry}"
    assert "no customer" in peeked
    assert redriven == "redriven 1 of 1 letter of orders:dlq\n"
    assert [command.split()[1] for command in rest] == ["collect", "incidents", "doctor"]
    assert "collected 1 new" in said[0]
    assert "no customer" in said[1]
    assert "appendonly is off" in said[2]
