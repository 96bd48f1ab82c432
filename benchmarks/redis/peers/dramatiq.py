"""Dramatiq: one process with eight threads, as `dramatiq -p 1 -t 8`, prefetching 500."""

import importlib
import os
import threading
from collections import Counter
from typing import Any

from benchmarks.load import FAILS, Failed, bodies, marked
from benchmarks.measure import Meter, warm_up

QUEUE = "orders"
ATTEMPTS = 3


def fill(url: str, messages: int) -> None:
    _, actor = _actor(url, Meter(messages), threading.Event())
    for body in bodies(0, messages, spared=warm_up(messages)):
        actor.send(body.decode())


def drain(url: str, messages: int) -> dict[str, Any]:
    return _drain(url, messages, failing=False)


def drain_failing(url: str, messages: int) -> dict[str, Any]:
    return _drain(url, messages, failing=True)


def _drain(url: str, messages: int, *, failing: bool) -> dict[str, Any]:
    os.environ["dramatiq_queue_prefetch"] = "500"  # noqa: SIM112 - its own spelling
    meter, done = Meter(messages), threading.Event()
    broker, _ = _actor(url, meter, done, failing=failing)
    worker = importlib.import_module("dramatiq").Worker(broker, worker_threads=8)
    worker.start()
    done.wait()
    worker.stop()
    dead = broker.client.zcard(f"dramatiq:{QUEUE}.XQ")
    assert dead == (marked(messages, spared=warm_up(messages)) if failing else 0), dead
    return meter.result()


def _actor(url: str, meter: Meter, done: threading.Event, *, failing: bool = False) -> tuple[Any, Any]:
    dramatiq = importlib.import_module("dramatiq")
    broker = importlib.import_module("dramatiq.brokers.redis").RedisBroker(url=url)
    lock = threading.Lock()
    attempts: Counter[str] = Counter()
    mark = FAILS.decode()

    def handle(body: str) -> None:
        fails = failing and mark in body
        with lock:
            if fails:
                attempts[body] += 1
            if (not fails or attempts[body] == ATTEMPTS) and meter.add(1):
                done.set()
        if fails:
            raise Failed("this message always fails")

    options = {"max_retries": ATTEMPTS - 1, "min_backoff": 1, "max_backoff": 1}
    return broker, dramatiq.actor(handle, broker=broker, queue_name=QUEUE, **options)
