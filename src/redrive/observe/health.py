"""Liveness: how a machine outside sees that a worker still turns.

Whoever does the work calls `beat()` from its own loop, so that a loop which hangs falls silent: the file
grows old, the port answers 503.
"""

import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Protocol

STALE_AFTER = 30.0
"""Seconds without a beat after which the port says that the process hangs."""


class Liveness(Protocol):
    """Something that shows beats to the outside."""

    def beat(self) -> None:
        """Show that the loop turns. Never raises, never blocks for long."""
        ...

    def close(self) -> None:
        """Show that the process has ended on purpose. Idempotent."""
        ...


class LivenessFile:
    """A file touched at every beat and removed at the end; a probe looks at its age."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()  # a path that cannot be written is a mistake to be told now, not a silent probe

    def beat(self) -> None:
        try:
            self._path.touch()
        except OSError:
            return  # a full or vanished disk shows as an old file, which is what the probe is for

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


class HealthPort:
    """`GET /healthz` answers 200 while beats come and 503 when they have stopped; from a thread of its own.

    Raises `OSError` if the port is taken. Port 0 takes a free one; `port` says which.
    """

    def __init__(self, port: int, *, host: str = "127.0.0.1", clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._server = ThreadingHTTPServer((host, port), self._handler())
        self._beat_at = clock()
        self._thread = threading.Thread(target=self._server.serve_forever, name="redrive-health", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that answers."""
        return self._server.server_port

    def beat(self) -> None:
        self._beat_at = self._clock()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _silent_for(self) -> float:
        return self._clock() - self._beat_at

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        silent_for = self._silent_for

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/healthz":
                    self._answer(HTTPStatus.NOT_FOUND, "not found")
                elif (silent := silent_for()) > STALE_AFTER:
                    self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"no beat for {silent:.0f} s")
                else:
                    self._answer(HTTPStatus.OK, "ok")

            def _answer(self, status: HTTPStatus, text: str) -> None:
                body = f"{text}\n".encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """A probe every few seconds is no news."""

        return Handler
