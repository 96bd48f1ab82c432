"""Clients that take their time: each holds a connection, and a few hundred of them would hold all there are.

uvicorn closes a connection that is idle between two requests. One that is silent from the start, that says its request
a byte at a time, or that does not read its answer, it would serve for ever.
"""

from asyncio import Transport
from collections.abc import Iterable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_WITHIN = 10.0  # seconds from the first byte of a request, or from the connection, to the end of its headers
BODY_GRACE = 10.0  # seconds that a body may take however slow it is; then it must have come at this rate:
BODY_RATE = 1000  # bytes per second
READ_WITHIN = 30.0  # seconds in which a client has to take something of its answer


class WatchedProtocol(H11Protocol):
    """uvicorn's protocol, which also notes how far its client is. `is_slow` is asked from time to time."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head_since: float | None = None
        self._body_since: float | None = None
        self._body_size = 0
        self._unread = 0
        self._unread_since = 0.0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._head_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note(len(data))

    def is_slow(self, *, now: float) -> bool:
        """Whether this client has used up its time."""
        return self._is_slow_to_ask(now) or self._is_slow_to_read(now)

    def _note(self, size: int) -> None:
        now = self.loop.time()
        if self.conn.their_state is h11.IDLE:  # the headers are not complete
            self._head_since = now if self._head_since is None else self._head_since
            return
        self._head_since = None
        if self.conn.their_state is not h11.SEND_BODY:
            self._body_since = None
        elif self._body_since is None:
            self._body_since, self._body_size = now, 0
        else:
            self._body_size += size

    def _is_slow_to_ask(self, now: float) -> bool:
        if self._head_since is not None:
            return now - self._head_since > HEAD_WITHIN
        if self._body_since is None:
            return False
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._body_since, self._body_size = now, 0  # it is we who are slow
            return False
        return now - self._body_since > BODY_GRACE + self._body_size / BODY_RATE

    def _is_slow_to_read(self, now: float) -> bool:
        unread = self.transport.get_write_buffer_size()
        if not self._unread or unread < self._unread:
            self._unread_since = now
        self._unread = unread
        return bool(unread) and now - self._unread_since > READ_WITHIN


def cut_slow_clients(connections: Iterable[Any], *, now: float) -> None:
    """End the connections of clients that have used up their time; `now` is the event loop's."""
    for connection in [*connections]:
        if isinstance(connection, WatchedProtocol) and connection.is_slow(now=now):
            connection.transport.abort()
