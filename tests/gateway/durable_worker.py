"""A worker of a durable gateway: `python -m tests.gateway.durable_worker BROKER ANSWERS BASE_URL`. Killed by tests."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from redrive import App
from redrive.brokers.sqlite.answers import SqliteAnswers
from redrive.clock import SystemClock
from redrive.core.policy import RetrySpec
from redrive.gateway import Gateway, ModelConfig
from redrive.gateway.executor import Executor, durable_policy


@asynccontextmanager
async def at_work(broker: str, answers: Path, base_url: str, *, retry: RetrySpec = 3) -> AsyncIterator[App]:
    """A worker that answers the requests to the model `fast`."""
    app = App(broker, name="gateway")
    kept = SqliteAnswers(answers, clock=SystemClock())
    models = {"fast": ModelConfig(base_url=base_url, model_name="model-1", concurrency=8)}
    async with Gateway(models, policy=0) as gateway:
        executor = Executor(gateway, kept, clock=SystemClock())
        policy, context = durable_policy(retry), ["agent_id", "model"]
        app.consumer("llm.fast", retry=policy, context=context, concurrency=16)(executor.handle)
        async with app, app.worker():
            yield app
    await kept.aclose()


async def main(broker: str, answers: str, base_url: str) -> None:
    async with at_work(broker, Path(answers), base_url, retry=[0.05, 0.05, 0.05]):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
