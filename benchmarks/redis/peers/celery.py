"""Celery: the solo pool, late acks, prefetching 100, without events, gossip, mingle and results."""

import importlib
import signal
from typing import Any

from benchmarks.load import bodies
from benchmarks.measure import Meter

QUIET = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR"]


def fill(url: str, messages: int) -> None:
    _, task = _task(url, Meter(messages))
    for body in bodies(0, messages):
        task.delay(body.decode())


def drain(url: str, messages: int) -> dict[str, Any]:
    meter = Meter(messages)
    app, _ = _task(url, meter)
    app.worker_main(["worker", "--pool", "solo", *QUIET])
    return meter.result()


def _task(url: str, meter: Meter) -> tuple[Any, Any]:
    app = importlib.import_module("celery").Celery("shop", broker=url)
    app.conf.update(
        task_acks_late=True,
        task_ignore_result=True,
        worker_prefetch_multiplier=100,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
    )

    def handle(_body: str) -> None:
        if meter.add(1):
            signal.raise_signal(signal.SIGTERM)

    return app, app.task(handle, name="handle")
