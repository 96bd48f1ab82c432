"""An Alertmanager, and somebody whom it calls.

Debian's package of it starts a server that nobody asked for, and does not run unless installed; so it is built from its
Go module, once on a machine.
"""

import fcntl
import json
import os
import queue
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.servers import roll
from tests.servers.install import Needed, Unavailable, on_path, require
from tests.servers.ports import free_port
from tests.servers.server import PATIENCE, Server

MODULE = "github.com/prometheus/alertmanager/cmd/alertmanager"
VERSION = "v0.27.0"
BUILDING = 1200  # seconds, on a slow machine

GO = Needed("go", on_path("go"), package="golang-go", advice="golang-go")

CONFIG = """\
route:
  receiver: somebody
  group_by: ["..."]
  group_wait: 0s
  group_interval: 1s
receivers:
  - name: somebody
    webhook_configs:
      - url: "{url}"
        send_resolved: true
"""


@cache
def alertmanager() -> Path:
    """Where its program is, built if it is not installed. Raises `Unavailable`."""
    if found := on_path("alertmanager", "prometheus-alertmanager")():
        return found
    folder = Path(tempfile.gettempdir()) / f"redrive-alertmanager-{os.geteuid()}" / VERSION
    built = folder / "alertmanager"
    if not built.exists():
        go = require(GO)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:  # takes a minute: nobody else should build it too
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not built.exists():
                _build(go, folder)
    return built


def _build(go: Path, folder: Path) -> None:
    """Installed only when it is whole: the tool moves what it has linked into its place."""
    command = (str(go), "install", f"{MODULE}@{VERSION}")
    env = {**os.environ, "GOBIN": str(folder)}
    try:
        subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True, timeout=BUILDING)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failed:
        words = (str(failed.stderr or "").strip().splitlines() or [str(failed)])[-1]
        raise Unavailable("alertmanager", f"is not installed and could not be built: {words}") from failed


class Alertmanager(Server):
    """An Alertmanager that calls this URL at once, when an alert fires and when it ends. Raises `Unavailable`."""

    def __init__(self, folder: Path, calls: str) -> None:
        super().__init__(folder)
        self.port = free_port()
        self._program = alertmanager()
        self._config = folder / "alertmanager.yml"
        self._config.write_text(CONFIG.format(url=calls), "utf-8")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> Sequence[str]:
        return (
            str(self._program),
            f"--config.file={self._config}",
            f"--storage.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
        )

    def start(self) -> None:
        super().start()
        roll.used("alertmanager", self._get("status")["versionInfo"]["version"] or VERSION)

    def is_ready(self) -> bool:
        try:
            return bool(self._get("status"))
        except (urllib.error.URLError, ConnectionError):
            return False

    def firing(self) -> Sequence[Mapping[str, Any]]:
        """The alerts that fire."""
        found: list[dict[str, Any]] = self._get("alerts")
        return found

    def _get(self, path: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v2/{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return json.load(answer)


class Somebody:
    """Whoever is called, as (status, labels, annotations) of each alert, in order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._calls: queue.Queue[Mapping[str, Any]] = queue.Queue()

    def called(self, body: Mapping[str, Any]) -> None:
        for alert in body["alerts"]:
            self._calls.put(alert)

    def next_call(self) -> Mapping[str, Any]:
        """Wait to be called."""
        return self._calls.get(timeout=2 * PATIENCE)


@contextmanager
def somebody() -> Iterator[Somebody]:
    """A server that takes calls."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.called(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told = Somebody(f"http://127.0.0.1:{server.server_address[1]}/")
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()
