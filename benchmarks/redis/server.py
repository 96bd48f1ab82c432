"""One redis-server for all runs: that of the tests, started here without persistence, or the one of the environment."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from benchmarks.measure import Sample
from benchmarks.runs import Case, run_apart
from tests.servers.install import Unavailable
from tests.servers.redis import RedisServer

GIVEN = "REDRIVE_BENCH_REDIS"  # its database is flushed before every run

Backlog = list[tuple[bytes, int, bytes]]  # key, milliseconds to live or 0, dump


@contextlib.contextmanager
def redis_server() -> Iterator["Server"]:
    """A server that answers and holds nothing. Raises `SystemExit` with what to do if there is none."""
    if given := os.environ.get(GIVEN):
        server = Server(given)
        if server.client.dbsize():
            raise SystemExit(f"{GIVEN}: expected an empty database, for it is flushed before every run")
        yield server
        return
    with tempfile.TemporaryDirectory(prefix="redrive-bench-redis-") as folder:
        try:
            started = RedisServer(Path(folder))
        except Unavailable as error:
            raise SystemExit(f"{error}; or name a server in {GIVEN}=redis://...") from error
        with started:
            yield Server(f"{started.url}/0")


class Server:
    """Runs cases that get a `url`, each on an emptied database with its backlog; notes what the server needed.

    A backlog is made once, by the case's `prepare`, and put back from its dump before each further run.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: Any = redis.Redis.from_url(url)
        self._backlogs: dict[tuple[str, str], Backlog] = {}

    def __call__(self, case: Case) -> Sample:
        self._prepare(case)
        before = self._cpu()
        answer = run_apart(case.run, python=case.python, url=self.url, **case.arguments)
        micros = (self._cpu() - before) / case.arguments["messages"] * 1e6
        return Sample(**answer, server_micros=micros, server_rss=self.client.info("memory")["used_memory_rss"])

    @property
    def version(self) -> str:
        return str(self.client.info("server")["redis_version"])

    def _prepare(self, case: Case) -> None:
        self.client.flushdb(asynchronous=False)
        self.client.memory_purge()  # so that its RSS is that of this run
        if case.prepare is None:
            return
        wanted = (case.prepare, repr(case.preparation))
        if wanted in self._backlogs:
            self._restore(self._backlogs[wanted])
        else:
            run_apart(case.prepare, python=case.python, url=self.url, **case.preparation)
            self._backlogs[wanted] = self._dump()

    def _dump(self) -> Backlog:
        return [(key, max(self.client.pttl(key), 0), self.client.dump(key)) for key in self.client.scan_iter()]

    def _restore(self, backlog: Backlog) -> None:
        with self.client.pipeline(transaction=False) as pipeline:
            for key, expires, value in backlog:
                pipeline.restore(key, expires, value)
            pipeline.execute()

    def _cpu(self) -> float:
        used = self.client.info("cpu")
        return float(used["used_cpu_user"] + used["used_cpu_sys"])
