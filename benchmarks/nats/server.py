"""One nats-server for all runs: that of the tests, started here, or the one that the environment names."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nats

from benchmarks.measure import Sample, cpu_of, peak_rss
from benchmarks.runs import Case, run_apart
from tests.servers.install import Unavailable
from tests.servers.nats import NatsServer, version

GIVEN = "REDRIVE_BENCH_NATS"  # its streams are deleted before every run


@contextlib.contextmanager
def nats_server() -> Iterator["Server"]:
    """A server that answers and holds nothing. Raises `SystemExit` with what to do if there is none."""
    if given := os.environ.get(GIVEN):
        server = Server(given, version="of the environment")
        if asyncio.run(streams(given)):
            raise SystemExit(f"{GIVEN}: expected a server without streams, for they are deleted before every run")
        yield server
        return
    with tempfile.TemporaryDirectory(prefix="redrive-bench-nats-") as folder:
        try:
            started = NatsServer(Path(folder))
        except Unavailable as error:
            raise SystemExit(f"{error}; or name a server in {GIVEN}=nats://...") from error
        with started:
            yield Server(started.url, version=version(Path(started.command()[0])), process=started.pid)


class Server:
    """Runs cases that get a `url`, each on a server with its backlog and nothing else; notes what the server needed."""

    def __init__(self, url: str, *, version: str, process: int | None = None) -> None:
        self.url = url
        self.version = version
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


async def streams(url: str) -> list[str]:
    """The names of what there is."""
    async with await nats.connect(url) as client:
        return [one.config.name or "" for one in await client.jetstream().streams_info()]


async def _empty(url: str) -> None:
    async with await nats.connect(url) as client:
        for name in await streams(url):
            await client.jetstream().delete_stream(name)
