import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

import pytest

from tests.servers.ports import free_port

REDRIVE = (sys.executable, "-m", "redrive.cli")
PROGRAM = """
import asyncio, os, signal
import redrive

app = redrive.App("sqlite:///shop.db", name="shop")

@app.consumer("orders", retry=[0.1], lease="1s")
async def charge(order: dict) -> None:
    if order["id"] == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if order["id"] == "slow":
        await asyncio.Event().wait()
    if order["id"] == "wrong":
        raise redrive.GiveUp("wrong", code="wrong")
"""
LINGERING = """
import asyncio
from pathlib import Path
import redrive

async def lifespan():
    Path("begun").touch()
    yield
    await asyncio.Event().wait()

app = redrive.App("sqlite:///shop.db", name="shop", grace=1, lifespan=lifespan)

@app.consumer("orders")
async def charge(order: dict) -> None: ...
"""


def until(true: Callable[[], bool], *, what: str, within: float = 60) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, f"stuck: {what}"
        threading.Event().wait(0.05)


def answer(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as found:
            return str(found.read().decode())
    except URLError:
        return ""


def counted(page: str, name: str, **labels: str) -> float:
    lines = [line for line in page.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    hits = [line for line in lines if all(f'{label}="{value}"' in line for label, value in labels.items())]
    return sum(float(line.rpartition(" ")[2]) for line in hits)


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.env = {**os.environ, "REDRIVE_BROKER": "sqlite:///shop.db"}
        (path / "first.py").write_text(PROGRAM, "utf-8")

    def run(self, *tokens: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*REDRIVE, *tokens], cwd=self.path, env=self.env, capture_output=True, text=True, check=False
        )

    @contextmanager
    def worker(self, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
        with (self.path / "worker.log").open("wb") as log:
            worker = subprocess.Popen(
                [*REDRIVE, "worker", "first:app", "--no-collect", *flags], cwd=self.path, env=self.env, stderr=log
            )
        try:
            yield worker
        finally:
            worker.kill()
            worker.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_worker_shows_metrics_and_health_for_all_its_processes_and_ends_in_good_order(folder: Folder) -> None:
    metrics, health = free_port(), free_port()
    file = folder.path / "alive"
    flags = ("--processes", "2", "--metrics-port", str(metrics), "--health-port", str(health))
    (folder.path / "orders").write_text('{"id": 1}\n' * 20 + '{"id": "wrong"}\n', "utf-8")

    with folder.worker(*flags, "--liveness-file", str(file)) as worker:
        assert folder.run("publish", "orders", "@orders", "--lines").returncode == 0

        def page() -> str:
            return answer(metrics, "/metrics")

        until(lambda: counted(page(), "redrive_settled_total", outcome="acked") == 20, what="20 are acked")
        until(lambda: counted(page(), "redrive_letters_total", reason="rejected") == 1, what="1 is dead")
        until(lambda: answer(health, "/healthz") == "ok\n", what="the worker is healthy")
        alive = file.exists()
        worker.send_signal(signal.SIGTERM)
        status = worker.wait(timeout=60)

    assert alive
    assert status == 0
    assert not file.exists()


def test_the_death_of_a_process_is_counted_and_its_killer_is_given_up(folder: Folder) -> None:
    metrics = free_port()
    with folder.worker("--metrics-port", str(metrics)) as worker:
        assert folder.run("publish", "orders", '{"id": "deadly"}').returncode == 0
        assert folder.run("publish", "orders", '{"id": 1}').returncode == 0

        def page() -> str:
            return answer(metrics, "/metrics")

        def given_up() -> bool:
            return counted(page(), "redrive_letters_total", reason="worker_crash") == 1

        until(given_up, what="the killer is given up")
        until(lambda: counted(page(), "redrive_settled_total", outcome="acked") == 1, what="the other is acked")
        deaths = counted(page(), "redrive_worker_deaths_total")
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=60)

    assert deaths >= 3
    assert "SIGKILL" in folder.run("dlq", "peek", "--queue", "orders", "--json").stdout


def in_flight(folder: Folder) -> int:
    return _depth(folder, "in_flight")


def waiting(folder: Folder) -> int:
    return _depth(folder, "waiting")


def _depth(folder: Folder, name: str) -> int:
    lines = folder.run("queues", "--json").stdout.splitlines()
    return sum(int(json.loads(line)[name]) for line in lines)


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_killed_process_takes_its_gauges_with_it_and_no_count_falls(folder: Folder) -> None:
    metrics = free_port()
    (folder.path / "orders").write_text('{"id": 1}\n' * 20 + '{"id": "slow"}\n' * 3, "utf-8")

    def page() -> str:
        return answer(metrics, "/metrics")

    def counts() -> list[float]:
        names = ("redrive_settled_total", "redrive_handler_seconds_count", "redrive_failed_attempts_bucket")
        return [counted(page(), name) for name in names]

    with folder.worker("--metrics-port", str(metrics)) as worker:
        assert folder.run("publish", "orders", "@orders", "--lines").returncode == 0
        until(lambda: counted(page(), "redrive_settled_total", outcome="acked") == 20, what="20 are acked")
        until(lambda: counted(page(), "redrive_in_flight") == 3, what="3 are in flight")
        before = counts()
        (child,) = children(worker.pid)
        os.kill(child, signal.SIGKILL)
        until(lambda: counted(page(), "redrive_worker_deaths_total") >= 1, what="its death is counted")
        after = counts()
        until(lambda: counted(page(), "redrive_in_flight") < 3, what="nothing is in the hands of the dead")
        assert folder.run("publish", "orders", '{"id": 1}').returncode == 0
        until(lambda: counted(page(), "redrive_settled_total", outcome="acked") == 21, what="one more is acked")

    assert before[:2] == [20, 20]
    assert all(now >= then for now, then in zip(after, before, strict=True))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_suspect_that_never_ends_does_not_outlive_its_supervisor_for_long(folder: Folder) -> None:
    program = folder.path / "first.py"
    program.write_text(program.read_text("utf-8").replace('name="shop"', 'name="shop", grace=1'), "utf-8")
    with folder.worker() as worker:
        assert folder.run("publish", "orders", '{"id": "slow"}').returncode == 0
        until(lambda: in_flight(folder) == 1, what="it is in flight")
        (child,) = children(worker.pid)
        os.kill(child, signal.SIGKILL)
        until(lambda: len(children(worker.pid)) == 2 and in_flight(folder) == 1, what="it runs alone")
        alone = children(worker.pid)
        worker.kill()

        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in alone), what="both are gone")

    assert in_flight(folder) + waiting(folder) == 1


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_worker_that_cannot_end_does_not_outlive_its_supervisor_for_long(folder: Folder) -> None:
    (folder.path / "first.py").write_text(LINGERING, "utf-8")
    begun = folder.path / "begun"
    with folder.worker() as worker:
        until(begun.exists, what="it has begun")
        (child,) = children(worker.pid)
        worker.kill()

        until(lambda: not Path(f"/proc/{child}").exists(), what="it is gone")

    assert (in_flight(folder), waiting(folder)) == (0, 0)


@pytest.mark.parametrize(
    ("target", "said"),
    [("absent:app", "cannot import"), ("first", "module:attribute"), ("first:redrive", "redrive.App")],
)
def test_an_app_that_is_not_there_is_one_clear_line_and_no_loop(folder: Folder, target: str, said: str) -> None:
    ended = folder.run("worker", target)

    assert ended.returncode == 2
    assert said in ended.stderr
    assert len(re.findall(r"^redrive: ", ended.stderr, re.MULTILINE)) == 1


def test_a_taken_port_is_one_clear_line(folder: Folder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        answers = [folder.run("worker", "first:app", flag, port) for flag in ("--health-port", "--metrics-port")]

    assert [ended.returncode for ended in answers] == [2, 2]
    assert "--health-port: Address already in use" in answers[0].stderr
    assert "--metrics-port: Address already in use" in answers[1].stderr
