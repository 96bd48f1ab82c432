"""The durable mode of the LLM gateway: where answers are kept, and the worker that gives them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from redrive.clock import SystemClock
from redrive.core.duration import NOW
from redrive.core.errors import ConfigError
from redrive.core.ports import Clock, EventSink
from redrive.core.ports.answers import Answers
from redrive.core.url import mask_url
from redrive.observe.bus import Bus
from redrive.observe.event_log import EventLog
from redrive.wiring.counting import REDIS_SCHEMES
from redrive.wiring.files import sqlite_path
from redrive.worker.consumer import Consumer, Treatment
from redrive.worker.crew import GRACE, Crew, Duty
from redrive.worker.outcomes import Surroundings

if TYPE_CHECKING:
    from redrive.gateway import Gateway


def answers(url: str, *, clock: Clock | None = None) -> Answers:
    """Where answers of a durable gateway are kept: an SQLite file, or the Redis at a URL.

    Raises `ConfigError`, `MissingExtra`.
    """
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from redrive.brokers.sqlite.answers import SqliteAnswers

        return SqliteAnswers(sqlite_path(url, what="answers"), clock=clock or SystemClock())
    if scheme in REDIS_SCHEMES:
        from redrive.brokers.redis.answers import RedisAnswers

        return RedisAnswers(url)
    raise ConfigError(f"answers: expected a URL such as sqlite:///answers.db or redis://…, got {mask_url(url)!r}")


@asynccontextmanager
async def answering(gateway: "Gateway", *, sink: EventSink | None = None) -> AsyncIterator[None]:
    """Answer the requests of a durable gateway, in this process, for as long as the block lasts.

    It is a worker like any other, whose handler makes one attempt: retries, leases, crashes and letters are its own.
    At the end what is in flight has 25 seconds to be answered; what has not been sent is handed back at once.
    Its events go to `sink`, by default to where the gateway's own go, and where those go nowhere, to the log. Raises
    `ConfigError` for a gateway without a broker.
    """
    from redrive.gateway.executor import Executor, consumer_options
    from redrive.gateway.state import tell_states
    from redrive.gateway.ticket import GROUP, queue_of

    durable = gateway.durable
    if durable is None:
        raise ConfigError("gateway: expected an open one with a broker")
    executor = Executor(gateway, durable.answers, clock=durable.clock, arrived=durable.arrived, failed=durable.failed)
    treatments = {
        name: Treatment.of(consumer_options(gateway.policy, model, context=durable.context))
        for name, model in gateway.models.items()
    }
    consumers = [Consumer(queue_of(name), executor.handle, treatment) for name, treatment in treatments.items()]
    heard = sink or gateway.sink
    told = Bus(gateway.hear, EventLog() if heard is None else heard.emit)
    around = Surroundings(durable.clock, told, Random(), tracing=durable.tracing)  # noqa: S311 - jitter, not secrets
    crew = Crew(durable.broker, consumers, duty=Duty(group=GROUP, grace=NOW), around=around)
    telling = None
    try:
        await crew.start()
        workers = {name: worker.subscription for name, worker in zip(gateway.models, crew.workers, strict=True)}
        telling = asyncio.create_task(tell_states(gateway, workers, clock=durable.clock))
        yield
    finally:
        if telling is not None:
            telling.cancel()
        await executor.stop(within=GRACE)
        await crew.stop()
