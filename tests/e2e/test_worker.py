"""`redrive worker` as a user runs it: real processes on a SQLite file, killed and stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

APP = """
import asyncio, os, signal, time
import redrive

app = redrive.App("sqlite:///shop.db", name="shop", version="v1", grace=5)


def note(line):
    fd = os.open("log.txt", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(fd, f"{line} {os.getpid()}\\n".encode())
    os.close(fd)


@app.consumer("orders", retry=[0.05, 0.05], lease=5)
async def charge(order: dict, delivery: redrive.Delivery) -> None:
    note(f"start {order['id']}")
    match order.get("fate"):
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "poison":
            raise ValueError("poison")
        case "slow":
            await asyncio.sleep(order["seconds"])
        case "block":
            time.sleep(order["seconds"])
    note(f"done {order['id']}")


if __name__ == "__main__":
    app.run(collect=False)
"""


class Shop:
    """A folder with the app, the file, and the processes that work on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        (folder / "first.py").write_text(APP)

    def redrive(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "redrive.cli", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, *words], cwd=self.folder, env=self.environment)
        self.processes.append(process)
        return process

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "REDRIVE_BROKER": "sqlite:///shop.db", "REDRIVE_LOG_LEVEL": "error"}

    def publish(self, *orders: dict[str, object]) -> None:
        (self.folder / "orders.jsonl").write_text("".join(json.dumps(order) + "\n" for order in orders))
        self.redrive("publish", "orders", "@orders.jsonl", "--lines")

    def log(self, word: str) -> list[str]:
        path = self.folder / "log.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split()[1] for line in lines if line.startswith(word)]

    def pids(self) -> set[int]:
        lines = (self.folder / "log.txt").read_text().splitlines()
        return {int(line.split()[-1]) for line in lines}

    def letters(self) -> list[dict[str, object]]:
        lines = self.redrive("dlq", "peek", "--queue", "orders", "--json").splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    for process in shop.processes:
        if process.poll() is None:
            process.terminate()
            process.wait(30)


def until(condition: Callable[[], bool], *, limit: float = 60) -> None:
    ends = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.05)


def test_the_first_program_runs_and_stops_when_asked(shop: Shop) -> None:
    shop.publish({"id": 1}, {"id": 2, "fate": "poison"})

    process = shop.start("first.py")
    until(lambda: shop.log("done") == ["1"] and len(shop.log("start")) == 4)
    process.send_signal(signal.SIGTERM)

    assert process.wait(30) == 0
    (letter,) = shop.letters()
    assert (letter["reason"], letter["retry_count"]) == ("attempts_exhausted", 3)


def test_a_message_that_kills_its_process_ends_as_a_letter_and_its_neighbours_are_done(shop: Shop) -> None:
    orders: list[dict[str, object]] = [{"id": number} for number in range(1, 51)]
    orders[25] = {"id": 26, "fate": "kill"}
    shop.publish(*orders)

    process = shop.start("-m", "redrive.cli", "worker", "first:app", "--processes", "2", "--no-collect")
    until(lambda: len(shop.letters()) == 1 and len(set(shop.log("done"))) == 49)
    process.send_signal(signal.SIGTERM)

    assert process.wait(30) == 0
    (letter,) = shop.letters()
    assert letter["reason"] == "worker_crash"
    attempts = letter["attempts"]
    assert isinstance(attempts, list)
    assert [attempt["crash"] for attempt in attempts] == [True] * 3
    assert "SIGKILL" in attempts[0]["error_message"]
    assert "peak RSS" in attempts[0]["error_message"]


def test_an_embedded_worker_that_was_killed_runs_its_suspects_alone_after_a_restart(shop: Shop) -> None:
    shop.publish(*({"id": number, "fate": "slow", "seconds": 0.2} for number in range(1, 6)))
    first = shop.start("first.py")
    until(lambda: len(shop.log("start")) == 5)
    first.kill()
    first.wait()

    second = shop.start("first.py")
    until(lambda: len(set(shop.log("done"))) == 5)
    second.send_signal(signal.SIGTERM)

    assert second.wait(30) == 0
    assert shop.letters() == []


def test_sigterm_lets_running_handlers_end_and_hands_back_the_rest_unspent(shop: Shop) -> None:
    shop.publish(*({"id": number, "fate": "slow", "seconds": 1} for number in range(1, 4)))
    process = shop.start("-m", "redrive.cli", "worker", "first:app", "--no-collect")
    until(lambda: len(shop.log("start")) == 3)

    process.send_signal(signal.SIGTERM)

    assert process.wait(30) == 0
    assert sorted(shop.log("done")) == ["1", "2", "3"]


def test_a_handler_that_blocks_the_loop_beyond_the_lease_keeps_its_message(shop: Shop) -> None:
    shop.publish({"id": 1, "fate": "block", "seconds": 7}, {"id": 2})

    process = shop.start("-m", "redrive.cli", "worker", "first:app", "--processes", "2", "--no-collect")
    until(lambda: set(shop.log("done")) == {"1", "2"})
    process.send_signal(signal.SIGTERM)

    assert process.wait(30) == 0
    assert shop.log("start").count("1") == 1


def test_the_children_stop_when_their_supervisor_is_killed(shop: Shop) -> None:
    shop.publish(*({"id": number, "fate": "slow", "seconds": 0.2} for number in range(1, 20)))
    process = shop.start("-m", "redrive.cli", "worker", "first:app", "--processes", "2", "--no-collect")
    until(lambda: len(shop.log("done")) >= 1)

    process.kill()
    process.wait()
    until(lambda: not any(_alive(pid) for pid in shop.pids()))

    (orders,) = map(json.loads, shop.redrive("queues", "--json").splitlines())
    assert (orders["in_flight"], orders["scheduled"], orders["dead"]) == (0, 0, 0)
    assert len(shop.log("done")) + orders["waiting"] == 19


def test_an_app_that_cannot_start_ends_the_worker_with_one_clear_line(shop: Shop) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "redrive.cli", "worker", "first:nothing"],
        cwd=shop.folder,
        env=shop.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert done.returncode == 2
    assert "first:nothing" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("mistake", ["def (", "1 / 0", "import nowhere_to_be_found"])
def test_an_app_whose_module_cannot_be_imported_ends_the_worker_with_one_clear_line(shop: Shop, mistake: str) -> None:
    (shop.folder / "broken.py").write_text(f"{mistake}\n")

    done = subprocess.run(
        [sys.executable, "-m", "redrive.cli", "worker", "broken:app"],
        cwd=shop.folder,
        env=shop.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "broken" in line


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
