"""The way back as people go it: commands on real processes, from a dead letter to the answer "did it work?"."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

PYTHON = sys.executable
REDRIVE = (PYTHON, "-m", "redrive.cli")
COLLECT = (*REDRIVE, "collect")
WORKER = (*REDRIVE, "worker", "first:app")
APP = """
import os
from pathlib import Path
import redrive

version = Path("version").read_text() if Path("version").exists() else "1"
app = redrive.App(os.environ["REDRIVE_BROKER"], name="shop", version=version, grace=5)


@app.consumer("orders", retry=0, breaker=None)
async def charge(order: dict) -> None:
    if version == "1":
        raise ValueError(f"no rate for order {order['id']}")


if __name__ == "__main__":
    app.run()
"""


class Shop:
    """A folder with an app and its letter store; its queue is a file there too, or on a server."""

    def __init__(self, folder: Path, broker: str) -> None:
        self.folder = folder
        self.env = {**os.environ, "REDRIVE_BROKER": broker, "REDRIVE_LOG_LEVEL": "warning"}
        (folder / "first.py").write_text(APP)

    def run(self, *words: str, status: int = 0) -> str:
        ended = subprocess.run(
            [*REDRIVE, *words], cwd=self.folder, env=self.env, capture_output=True, text=True, check=False, timeout=120
        )
        assert ended.returncode == status, f"{words}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    def facts(self, *words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(*words, "--json").splitlines()]

    def states(self) -> dict[str, int]:
        if not (self.folder / "letters.db").exists():
            return {}
        counts: dict[str, int] = self.facts("letters", "stats")[0]["by_state"]
        return {state: number for state, number in counts.items() if number}

    def publish(self, number: int) -> None:
        lines = "".join(f'{{"id": {one}}}\n' for one in range(1, number + 1))
        (self.folder / "orders").write_text(lines)
        self.run("publish", "orders", "@orders", "--lines")

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        # Whoever runs the tests in the background has SIGINT ignored, and a child would inherit that.
        heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        return subprocess.Popen(words, cwd=self.folder, env=self.env, preexec_fn=heard)  # noqa: PLW1509 - no threads here

    @contextmanager
    def working(self, *commands: tuple[str, ...]) -> Iterator[None]:
        """These programs, for as long as the block lasts; then they are asked to end."""
        processes = [self.start(*words) for words in commands]
        try:
            yield
            for process in processes:
                process.send_signal(signal.SIGTERM)
            assert [process.wait(60) for process in processes] == [0] * len(processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    kind = getattr(request, "param", "sqlite")
    return Shop(tmp_path, "sqlite:///shop.db" if kind == "sqlite" else request.getfixturevalue("empty_redis"))


everywhere = pytest.mark.parametrize("shop", ["sqlite", "redis"], indirect=True)


def until(true: Callable[[], bool], *, what: str, within: float = 90) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, f"stuck: {what}"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("shop", "commands"),
    [("sqlite", [WORKER]), ("sqlite", [(PYTHON, "first.py")]), ("redis", [(*WORKER, "--processes", "2"), COLLECT])],
    ids=["sqlite, worker", "sqlite, app.run", "redis, worker and collect"],
    indirect=["shop"],
)
def test_from_a_bug_to_an_incident_to_a_fix_to_every_letter_resolved(
    shop: Shop, commands: list[tuple[str, ...]]
) -> None:
    shop.publish(40)
    with shop.working(*commands):
        until(lambda: shop.states() == {"open": 40}, what="all letters are collected")
        (incident,) = shop.facts("incidents")
        flags = ("--incident", incident["incident_id"], "--canary", "1,5")
        stopped = shop.run("letters", "redrive", *flags, "--yes", status=1)
    (shop.folder / "version").write_text("2")
    with shop.working(*commands):
        said = shop.run("letters", "redrive", *flags, "--rate", "500/s", "--yes")

    assert (incident["open"], incident["queues"]) == (40, ["orders"])
    assert stopped.splitlines()[-1] == "stopped after 1: same failure, 39 untouched"
    assert said.splitlines()[-1] == ("Sent 1, it succeeded on version 2; sent 5, then 34: 40 resolved, 0 unconfirmed")
    assert shop.states() == {"resolved": 40}
    assert shop.facts("incidents") == []
    assert shop.facts("audit", "verify") == [{"holds": True}]


@everywhere
def test_without_a_collector_beside_the_worker_the_redrive_hears_the_answers_itself(shop: Shop) -> None:
    worker = (*WORKER, "--no-collect")
    shop.publish(10)
    with shop.working(worker):
        until(lambda: shop.facts("dlq", "length", "--queue", "orders")[0]["length"] == 10, what="all are dead")
    uncollected = shop.states()
    shop.run("collect", "--once")
    (shop.folder / "version").write_text("2")
    with shop.working(worker):
        said = shop.run("letters", "redrive", "--queue", "orders", "--canary", "2", "--yes")

    assert uncollected == {}
    assert said.splitlines()[-1].endswith("10 resolved, 0 unconfirmed")


def test_an_interrupted_redrive_goes_on_where_it_was(shop: Shop) -> None:
    shop.publish(30)
    with shop.working(WORKER):
        until(lambda: shop.states() == {"open": 30}, what="all letters are collected")
    (shop.folder / "version").write_text("2")

    sending = shop.start(*REDRIVE, "letters", "redrive", "--all", "--canary", "1", "--yes")  # nobody is there to answer
    until(lambda: shop.states().get("redriving") == 1, what="the canary is sent")
    sending.send_signal(signal.SIGINT)
    interrupted = sending.wait(60)
    (redrive,) = shop.facts("redrives")
    with shop.working(WORKER):
        shop.run("redrives", "resume", redrive["redrive_id"])

    assert interrupted == 130
    assert redrive["state"] == "running"
    assert shop.states() == {"resolved": 30}
    assert len(shop.facts("redrives")) == 1


@everywhere
def test_collect_as_a_process_of_its_own_takes_up_what_was_begun_elsewhere(shop: Shop) -> None:
    shop.publish(5)
    with shop.working((*WORKER, "--no-collect"), COLLECT):
        until(lambda: shop.states() == {"open": 5}, what="all letters are collected")
    sending = shop.start(*REDRIVE, "letters", "redrive", "--all", "--yes")
    until(lambda: shop.states() == {"redriving": 5}, what="all are sent")
    sending.kill()
    sending.wait()
    (shop.folder / "version").write_text("2")
    with shop.working((*WORKER, "--no-collect"), COLLECT):
        until(lambda: shop.facts("redrives")[0]["state"] == "done", what="the redrive has ended")

    assert shop.states() == {"resolved": 5}


def test_a_letter_is_tried_here_and_becomes_a_test_that_fails_until_the_bug_is_fixed(shop: Shop) -> None:
    shop.publish(1)
    with shop.working(WORKER):
        until(lambda: shop.states() == {"open": 1}, what="the letter is collected")
    letter_id = shop.facts("letters", "list")[0]["letter_id"]
    before = shop.run("letters", "try", letter_id[:8], "first:app", status=1)
    shop.run("letters", "export", letter_id, "--pytest", "--app", "first:app", "--to", "test_letter.py")

    def tested() -> int:
        command = (PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_letter.py")
        return subprocess.run(command, cwd=shop.folder, env=shop.env, capture_output=True, check=False).returncode

    broken = tested()
    (shop.folder / "version").write_text("2")
    after = shop.run("letters", "try", letter_id[:8], "first:app")

    assert before.startswith("it failed the same way: ValueError")
    assert (broken, tested()) == (1, 0)
    assert after == "it succeeded; it would be acked\n"
    assert shop.states() == {"open": 1}
