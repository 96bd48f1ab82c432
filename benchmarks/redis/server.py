"""One redis-server for all runs: started here, without persistence, or the one that the environment names."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import redis

from benchmarks.measure import Sample
from benchmarks.runs import Case, run_apart

GIVEN = "REDRIVE_BENCH_REDIS"  # its database is flushed before every run
WAIT = 10.0  # seconds for a server to answer

Backlog = list[tuple[bytes, int, bytes]]  # key, milliseconds to live or 0, dump


@contextlib.contextmanager
def redis_server() -> Iterator["Server"]:
    """A server that answers and holds nothing. Raises `SystemExit` with what to do if there is none."""
    given = os.environ.get(GIVEN)
    with contextlib.nullcontext(given) if given else _started() as url:
        server = Server(url)
        server.wait_until_ready()
        if server.client.dbsize():
            raise SystemExit(f"{GIVEN}: expected an empty database, for it is flushed before every run")
        yield server


@contextlib.contextmanager
def _started() -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit(f"redis-server: not found; install it, or name a server in {GIVEN}=redis://...")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no", "--loglevel", "warning"]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


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

    def wait_until_ready(self) -> None:
        end = time.monotonic() + WAIT
        while True:
            try:
                self.client.ping()
            except redis.ConnectionError as error:
                if time.monotonic() > end:
                    raise SystemExit(f"{self.url} does not answer: {error}") from error
                time.sleep(0.05)
            else:
                return

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
