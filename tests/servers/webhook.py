"""A server on loopback that takes what a webhook is sent: as it should, or with the faults that it was told to have."""

import json
import queue
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, NamedTuple

from tests.servers.server import PATIENCE


class Answer(NamedTuple):
    """How one call is answered."""

    status: int = 200
    body: bytes = b"ok"
    headers: Mapping[str, str] = {}


class Post(NamedTuple):
    """One call that was taken."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class Chat:
    """Whoever is called. `answers` are given one after the other; then every call is taken."""

    def __init__(self, port: int, answers: Sequence[Answer]) -> None:
        self.port = port
        self.tries = 0
        self._answers = [*answers]
        self._taken: queue.Queue[Post] = queue.Queue()
        self._lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/B0/s3cret"

    def called(self, post: Post) -> Answer:
        with self._lock:
            self.tries += 1
            answer = self._answers.pop(0) if self._answers else Answer()
        if answer.status < 300:
            self._taken.put(post)
        return answer

    def next_post(self) -> Post:
        """Wait to be told something."""
        return self._taken.get(timeout=2 * PATIENCE)

    def posts(self) -> list[Post]:
        """What came and was not looked at yet."""
        found = []
        while not self._taken.empty():
            found.append(self._taken.get_nowait())
        return found


@contextmanager
def chat(*answers: Answer) -> Iterator[Chat]:
    """A server that takes calls."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = told.called(Post(self.path, dict(self.headers), body))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told = Chat(server.server_address[1], answers)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()
