"""RQ: SimpleWorker, which does not fork per message, without results."""

import importlib
from collections import Counter
from typing import Any

from benchmarks.load import FAILS, Failed, bodies, marked
from benchmarks.measure import Meter, warm_up

ATTEMPTS = 3

_meter = Meter(0)
_failures: Counter[bytes] = Counter()


def fill(url: str, messages: int) -> None:
    _fill(url, messages, "handle")


def fill_failing(url: str, messages: int) -> None:
    _fill(url, messages, "handle_failing")


def drain(url: str, messages: int, *, failing: bool = False) -> dict[str, Any]:
    global _meter  # noqa: PLW0603 - RQ finds the handler by the name of its module
    _meter = Meter(messages)
    rq, queue = importlib.import_module("rq"), _queue(url)
    rq.SimpleWorker([queue], connection=queue.connection).work(burst=True, logging_level="CRITICAL")
    dead = queue.failed_job_registry.count
    assert dead == (marked(messages, spared=warm_up(messages)) if failing else 0), dead
    return _meter.result()


def handle(_body: bytes) -> None:
    _meter.add(1)


def handle_failing(body: bytes) -> None:
    if FAILS not in body:
        _meter.add(1)
        return
    _failures[body] += 1
    if _failures[body] == ATTEMPTS:
        _meter.add(1)
    raise Failed("this message always fails")


def _fill(url: str, messages: int, function: str) -> None:
    queue = _queue(url)
    retry = importlib.import_module("rq").Retry(max=ATTEMPTS - 1)
    queue.enqueue_many(
        queue.prepare_data(f"{__name__}.{function}", args=(body,), result_ttl=0, retry=retry)
        for body in bodies(0, messages, spared=warm_up(messages))
    )


def _queue(url: str) -> Any:
    connection = importlib.import_module("redis").Redis.from_url(url)
    return importlib.import_module("rq").Queue("orders", connection=connection)
