"""One Kafka broker for all runs: that of the tests, started here, or the one that the environment names."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks.measure import Sample, cpu_of, peak_rss
from benchmarks.runs import Case, run_apart
from tests.servers.install import Unavailable
from tests.servers.kafka import VERSION, KafkaServer
from tests.servers.server import until

GIVEN = "REDRIVE_BENCH_KAFKA"  # its topics are deleted before every run
WAIT = 30.0  # seconds for what was asked of it


@contextlib.contextmanager
def kafka_server() -> Iterator["Server"]:
    """A broker that answers and holds nothing. Raises `SystemExit` with what to do if there is none."""
    if given := os.environ.get(GIVEN):
        server = Server(given, version="of the environment")
        if server.topics():
            raise SystemExit(f"{GIVEN}: expected a cluster without topics, for they are deleted before every run")
        yield server
        return
    with tempfile.TemporaryDirectory(prefix="redrive-bench-kafka-") as folder:
        try:
            started = KafkaServer(Path(folder))
        except Unavailable as error:
            raise SystemExit(f"{error}; or name a cluster in {GIVEN}=kafka://...") from error
        with started:
            yield Server(f"kafka://{started.address}", version=VERSION, process=started.pid)


class Server:
    """Runs cases that get a `url`, each on a cluster with its backlog and nothing else; notes what the broker needed.

    The backlog is the same for everybody: written by our own Python, whatever the case runs on.
    """

    def __init__(self, url: str, *, version: str, process: int | None = None) -> None:
        self.url = url
        self.version = version
        self._process = process
        self._admin = AdminClient({"bootstrap.servers": servers_of(url)})

    def __call__(self, case: Case) -> Sample:
        self._empty()
        if case.prepare is not None:
            run_apart(case.prepare, url=self.url, **case.preparation)
        before = self._cpu()
        answer = run_apart(case.run, python=case.python, url=self.url, **case.arguments)
        micros = (self._cpu() - before) / case.arguments["messages"] * 1e6
        return Sample(**answer, server_micros=micros, server_rss=self._rss())

    def topics(self) -> list[str]:
        """What there is, but for what Kafka keeps for itself."""
        return [name for name in self._admin.list_topics(timeout=WAIT).topics if not name.startswith("__")]

    def _empty(self) -> None:
        groups: Any = self._admin.list_consumer_groups().result()
        for group in groups.valid:
            with contextlib.suppress(KafkaException):  # whoever was in it has left a moment ago
                self._admin.delete_consumer_groups([group.group_id])[group.group_id].result()
        if names := self.topics():
            for deleted in self._admin.delete_topics(names, operation_timeout=WAIT).values():
                deleted.result()
        until(lambda: not self.topics(), what="topics are deleted", patience=WAIT)

    def _rss(self) -> int:
        return 0 if self._process is None else peak_rss(self._process)

    def _cpu(self) -> float:
        return 0.0 if self._process is None else cpu_of(self._process)


def servers_of(url: str) -> str:
    """What other clients call `bootstrap.servers`."""
    return url.partition("://")[2].partition("?")[0].partition("/")[0]
