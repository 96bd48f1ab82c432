"""Other queues on SQLite. All of them commit every message by itself.

The `fill_…` and `drain_…` functions run in the environment of their queue.
"""

import asyncio
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.load import bodies
from benchmarks.measure import Meter
from benchmarks.peers import Peer

MESSAGES = 5_000


def _peer(requirement: str, functions: str, settings: str) -> Peer:
    return Peer(
        requirements=[requirement],
        settings=settings,
        fill=f"{__name__}:fill_{functions}",
        drain=f"{__name__}:drain_{functions}",
        messages=MESSAGES,
    )


PEERS = (
    _peer("persist-queue==1.1.0", "persist_queue", "SQLiteAckQueue as it comes: WAL, FULL"),
    _peer("litequeue==0.9", "litequeue", "LiteQueue, synchronous raised from NORMAL to FULL"),
    _peer(
        "huey==3.5.4",
        "huey",
        "SqliteHuey(fsync=True, results=False), dequeue and execute without its consumer",
    ),
)


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
