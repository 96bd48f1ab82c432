"""Whatever else may answer at an address: an HTTP server that says what a test wants it to say."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Asked(BaseHTTPRequestHandler):
    """One request to a stranger."""

    def say(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        """Answer in one piece."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - their name
        """Say nothing."""


@contextmanager
def stranger(answer: Callable[[Asked], None], *, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server that answers every request so."""

    class Handler(Asked):
        def do_GET(self) -> None:
            answer(self)

        do_POST = do_GET  # noqa: N815 - their name

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
