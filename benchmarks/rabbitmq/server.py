"""One RabbitMQ for all runs: that of the tests, started here, or the one that the environment names."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import aiormq

from benchmarks.measure import Sample, cpu_of, peak_rss
from benchmarks.runs import Case, run_apart
from redrive.brokers.rabbitmq.grid import GRID, milliseconds
from redrive.brokers.rabbitmq.names import BOOK, Place, fan_of, once_of
from tests.servers.install import Unavailable
from tests.servers.rabbitmq import RabbitServer, version

GIVEN = "REDRIVE_BENCH_RABBITMQ"  # its queue `orders`, and all that belongs to it, is deleted before every run
PLACE = Place("orders", "shop")


@contextlib.contextmanager
def rabbitmq_server() -> Iterator["Server"]:
    """A server that answers. Raises `SystemExit` with what to do if there is none."""
    if given := os.environ.get(GIVEN):
        yield Server(given)
        return
    with tempfile.TemporaryDirectory(prefix="redrive-bench-rabbitmq-") as folder:
        try:
            started = RabbitServer(Path(folder))
        except Unavailable as error:
            raise SystemExit(f"{error}; or name a server in {GIVEN}=amqp://...") from error
        with started:
            yield Server(started.url.partition("?")[0], process=started.pid)


class Server:
    """Runs cases that get a `url`, each with its backlog and nothing else; notes what the server needed."""

    def __init__(self, url: str, *, process: int | None = None) -> None:
        self.url = url
        self.version = version(url)
        self._process = process

    def __call__(self, case: Case) -> Sample:
        asyncio.run(_empty(self.url))
        if case.prepare is not None:
            run_apart(case.prepare, url=self.url, **case.preparation)
        before = self._cpu()
        answer = run_apart(case.run, python=case.python, url=self.url, **case.arguments)
        micros = (self._cpu() - before) / case.arguments["messages"] * 1e6
        return Sample(**answer, server_micros=micros, server_rss=self._rss())

    def _rss(self) -> int:
        return 0 if self._process is None else peak_rss(self._process)

    def _cpu(self) -> float:
        return 0.0 if self._process is None else cpu_of(self._process)


async def _empty(url: str) -> None:
    """Delete what any case may have begun."""
    queues = [PLACE.queue, f"{PLACE.queue}.dlq", f"{PLACE.queue}.outcomes"]
    names = [name for queue in queues for name in (queue, once_of(queue))]
    names += [PLACE.suspects, PLACE.held, PLACE.paused, PLACE.notes, PLACE.alive, BOOK]
    names += [PLACE.hold(milliseconds(step)) for step in GRID]
    connection = await aiormq.connect(url)
    channel = await connection.channel()
    for name in names:
        await channel.queue_delete(name)
    for queue in queues:
        await channel.exchange_delete(fan_of(queue))
    await connection.close()
