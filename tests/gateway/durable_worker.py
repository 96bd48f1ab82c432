"""A durable gateway at work: `python -m tests.gateway.durable_worker BROKER BASE_URL`. Killed by tests."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from redrive import connect
from redrive.core.policy import RetrySpec
from redrive.gateway import Gateway, ModelConfig
from redrive.wiring import answering

CONCURRENCY = 16


@asynccontextmanager
async def at_work(
    broker: str, base_url: str, *, retry: RetrySpec = 3, log_dir: Path | None = None, **model: Any
) -> AsyncIterator[Gateway]:
    """A gateway whose requests to the model `fast` are answered here."""
    opened = connect(broker)
    settings = {"base_url": base_url, "model_name": "model-1", "concurrency": CONCURRENCY, **model}
    models = {"fast": ModelConfig(**settings)}
    try:
        async with Gateway(models, policy=retry, log_dir=log_dir, broker=opened) as gateway, answering(gateway):
            yield gateway
    finally:
        await opened.aclose()


async def main(broker: str, base_url: str) -> None:
    async with at_work(broker, base_url, retry=[0.05, 0.05, 0.05]):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
