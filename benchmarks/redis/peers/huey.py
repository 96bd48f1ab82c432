"""Huey: one worker thread, without results. It takes a message off the list before it runs it."""

import importlib
import threading
from typing import Any

from benchmarks.load import bodies
from benchmarks.measure import Meter


def fill(url: str, messages: int) -> None:
    _, task = _task(url, Meter(messages), threading.Event())
    for body in bodies(0, messages):
        task(body)


def drain(url: str, messages: int) -> dict[str, Any]:
    meter, done = Meter(messages), threading.Event()
    huey, _ = _task(url, meter, done)
    consumer = huey.create_consumer(workers=1, periodic=False)
    consumer.start()
    done.wait()
    consumer.stop(graceful=True)
    return meter.result()


def _task(url: str, meter: Meter, done: threading.Event) -> tuple[Any, Any]:
    huey = importlib.import_module("huey").RedisHuey("orders", url=url, results=False)

    def handle(_body: bytes) -> None:
        if meter.add(1):
            done.set()

    return huey, huey.task()(handle)
