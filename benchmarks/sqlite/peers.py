"""Other queues on SQLite, each in a virtual environment of its own. All of them commit every message by itself.

The `fill_…` and `drain_…` functions run there: they must not import Redrive.
"""

import asyncio
import importlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import Case, Meter, run_apart
from benchmarks.sqlite.load import bodies

MESSAGES = 5_000


@dataclass(frozen=True, slots=True)
class Peer:
    """A package, how it was set up, and the functions that drive it."""

    package: str
    settings: str
    functions: str


PEERS = (
    Peer("persist-queue", "SQLiteAckQueue as it comes: WAL, FULL", "persist_queue"),
    Peer("litequeue", "LiteQueue, synchronous raised from NORMAL to FULL", "litequeue"),
    Peer("huey", "SqliteHuey(fsync=True, results=False), dequeue and execute without its consumer", "huey"),
)


class Peers:
    """The peers that could be installed, as cases with their settings, and the names of those that could not."""

    def __init__(self, folder: Path, *, scale: float) -> None:
        self._folder = folder
        self._sizes = {"messages": max(round(MESSAGES * scale), 20)}
        self.cases: list[Case] = []
        self.settings: dict[str, str] = {}
        self.skipped: list[str] = []

    def install(self) -> None:
        for peer in PEERS:
            try:
                python = _environment(self._folder / peer.package, peer.package)
            except (subprocess.CalledProcessError, OSError):
                self.skipped.append(peer.package)
                continue
            name = f"{peer.package} {run_apart(f'{__name__}:installed', python=python, package=peer.package)}"
            self.settings[name] = peer.settings
            self.cases.append(
                Case(
                    name=name,
                    prepare=f"{__name__}:fill_{peer.functions}",
                    preparation=self._sizes,
                    run=f"{__name__}:drain_{peer.functions}",
                    arguments=self._sizes,
                    python=python,
                )
            )


def installed(package: str) -> str:
    return version(package)


def _environment(folder: Path, package: str) -> str:
    python = str(folder / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True, capture_output=True)
    return python


async def _handle(_body: bytes) -> None:
    pass


async def _drain(take: Callable[[], None], meter: Meter) -> dict[str, Any]:
    while True:
        take()
        await _handle(b"")
        if meter.add(1):
            return meter.result()


def _persist_queue(path: str) -> Any:
    file = Path(path)
    return importlib.import_module("persistqueue").SQLiteAckQueue(str(file.parent), db_file_name=file.name)


def fill_persist_queue(path: str, messages: int) -> None:
    queue = _persist_queue(path)
    for body in bodies(0, messages):
        queue.put(body)


def drain_persist_queue(path: str, messages: int) -> dict[str, Any]:
    queue = _persist_queue(path)
    return asyncio.run(_drain(lambda: queue.ack(queue.get()), Meter(messages)))


def _litequeue(path: str) -> Any:
    queue = importlib.import_module("litequeue").LiteQueue(path)
    queue.conn.execute("PRAGMA synchronous = FULL")
    return queue


def fill_litequeue(path: str, messages: int) -> None:
    queue = _litequeue(path)
    for body in bodies(0, messages):
        queue.put(body.decode())


def drain_litequeue(path: str, messages: int) -> dict[str, Any]:
    queue = _litequeue(path)
    return asyncio.run(_drain(lambda: queue.done(queue.pop().message_id), Meter(messages)))


def _huey(path: str) -> tuple[Any, Any]:
    huey = importlib.import_module("huey").SqliteHuey(filename=path, fsync=True, results=False)

    def handle(_body: bytes) -> None:
        pass

    return huey, huey.task()(handle)


def fill_huey(path: str, messages: int) -> None:
    _, handle = _huey(path)
    for body in bodies(0, messages):
        handle(body)


def drain_huey(path: str, messages: int) -> dict[str, Any]:
    huey, _ = _huey(path)
    return asyncio.run(_drain(lambda: huey.execute(huey.dequeue()), Meter(messages)))
