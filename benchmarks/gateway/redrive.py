"""The gateway, with everything on: queue, router, limits of requests and tokens, journal, metrics."""

import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry

from benchmarks.gateway.driving import MESSAGES, RETRIES, TIMEOUT, drive, meet
from benchmarks.gateway.provider import FAULTS
from benchmarks.measure import rss
from redrive.gateway import Gateway, LLMRequest, ModelConfig, Outside
from redrive.gateway.journal import Journal
from redrive.observe.bus import Bus
from redrive.observe.metrics import Metrics
from redrive.testing import RecordingDeadLetterQueue

AMPLE: Final = 1_000_000_000
ROWS_A_SECOND: Final = 5_000
QUEUED: Final = 10_000
SECONDS: Final = 2.0


def run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    return asyncio.run(_run(url, messages, in_flight))


def queued(url: str, messages: int) -> dict[str, Any]:
    """The memory before and with so many accepted requests, of which one is sent."""
    return asyncio.run(_queued(url, messages))


def lag(url: str, *, journal: bool) -> dict[str, Any]:  # noqa: ARG001 - as every program
    """How late an event loop is that writes 5,000 rows a second, or does not."""
    return asyncio.run(_lag(journal=journal))


def faults(url: str) -> dict[str, Any]:
    return asyncio.run(_faults(url))


@asynccontextmanager
async def _opened(url: str, **model: Any) -> AsyncIterator[Gateway]:
    limits = {"requests_per_minute": AMPLE, "tokens_per_minute": AMPLE}
    config = ModelConfig(**{"base_url": url, "model_name": "model-1", **limits, **model})
    outside = Outside(sink=Bus(Metrics(CollectorRegistry())))
    with tempfile.TemporaryDirectory() as folder:
        async with Gateway(
            {"fast": config}, log_dir=folder, dlq=RecordingDeadLetterQueue(), outside=outside
        ) as gateway:
            yield gateway


def _request() -> LLMRequest:
    return LLMRequest(agent_id="planner", model="fast", messages=MESSAGES)


async def _run(url: str, messages: int, in_flight: int) -> dict[str, Any]:
    async with _opened(f"{url}/ok/redrive/v1", concurrency=in_flight) as gateway:

        async def ask() -> None:
            await gateway.ask(_request())

        return await drive(ask, messages=messages, in_flight=in_flight)


async def _queued(url: str, messages: int) -> dict[str, Any]:
    async with _opened(f"{url}/silent/redrive/v1", concurrency=1, queue_size=messages + 1) as gateway:
        await gateway.submit(_request())
        await asyncio.sleep(0)
        gc.collect()
        before = rss()
        futures = await gateway.submit_many([_request() for _ in range(messages)])
        after = rss()
        assert len(futures) == messages
    return {"messages": messages, "rss": [before, after]}


async def _lag(*, journal: bool) -> dict[str, Any]:
    late: list[float] = []
    names = count()
    with tempfile.TemporaryDirectory() as folder:
        book = Journal(Path(folder))
        end = time.monotonic() + SECONDS
        while (now := time.monotonic()) < end:
            for _ in range(ROWS_A_SECOND // 500 if journal else 0):
                book.write("responses", _row(next(names)))
            await asyncio.sleep(0.002)
            late.append(max(0.0, time.monotonic() - now - 0.002))
        await book.aclose()
        assert not book.dropped
    return {"messages": len(late), "times": late}


def _row(number: int) -> dict[str, Any]:
    return {
        "timestamp": "2026-01-01T00:00:00.000000Z",
        "request_id": f"{number:032x}",
        "agent_id": "planner",
        "model": "fast",
        "attempt": 1,
        "status": "success",
        "latency_ms": 812.5,
        "queue_ms": 0.1,
        "total_ms": 812.6,
        "provider_request_id": f"req-{number}",
        "input_tokens": 12,
        "output_tokens": 30,
    }


async def _faults(url: str) -> dict[str, Any]:
    models = {
        fault: ModelConfig(base_url=f"{url}/{fault}/redrive/v1", model_name="model-1", attempt_timeout=TIMEOUT)
        for fault in (*FAULTS, "ok")
    }
    async with Gateway(models, policy=RETRIES, dlq=RecordingDeadLetterQueue()) as gateway:

        async def ask(fault: str) -> str:
            request = LLMRequest(agent_id="planner", model=fault, messages=MESSAGES)
            return (await gateway.ask(request)).text

        return await meet(lambda fault: partial(ask, fault))
