"""A provider on loopback, in a process of its own: always the same answer, or one of the faults that clients meet.

`python -m benchmarks.gateway.provider` writes its port in a line. The path says what is wanted: `/FAULT/CLIENT/v1/…`,
and `ok` is no fault. `GET /visits` tells when each fault was visited by each client, in seconds.
"""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar, Final

USAGE: Final = {"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 42}
ANSWER: Final = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": "model-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x" * 120}, "finish_reason": "stop"}],
        "usage": USAGE,
    }
).encode()

BYTE_EVERY: Final = 0.25


def http(status: int, body: bytes, *headers: str) -> bytes:
    lines = ["Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([f"HTTP/1.1 {status} Said", *lines, "", ""]).encode() + body


def _error(code: str) -> bytes:
    return json.dumps({"error": {"message": "no", "type": code, "code": code}}).encode()


GOOD: Final = http(200, ANSWER)
_BUSY: Final = _error("rate_limit_exceeded")
_BROKEN: Final = http(500, _error("server_error"))

FIRST: Final = {  # said to the first visit only
    "retry-after-2": http(429, _BUSY, "Retry-After: 2"),
    "retry-after-ms": http(429, _BUSY, "retry-after-ms: 1500"),
    "cut-json": http(200, ANSWER[:60]),
    "error-in-200": http(200, _error("overloaded_error")),
}
ALWAYS: Final = {
    "ok": GOOD,
    "retry-after-61": http(429, _BUSY, "Retry-After: 61"),
    "quota": http(429, _error("insufficient_quota")),
    "should-not-retry": http(500, _error("server_error"), "x-should-retry: false"),
    "down": _BROKEN,
    "silent": b"",
    "dribble": b"",
}
FAULTS: Final = (*FIRST, *(name for name in ALWAYS if name != "ok"))


class Provider(asyncio.Protocol):
    """One connection. Requests come whole or in parts, one after the other."""

    visits: ClassVar[defaultdict[str, list[float]]] = defaultdict(list)
    running: ClassVar[set[asyncio.Task[None]]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._left = b""

    def data_received(self, data: bytes) -> None:
        self._left += data
        for path in self._paths():
            if path.startswith(b"/ok/"):
                self._transport.write(GOOD)
            else:
                self._misbehave(path.decode())

    def _paths(self) -> Iterator[bytes]:
        while (end := self._left.find(b"\r\n\r\n")) >= 0:
            head = self._left[:end]
            lowered = head.lower()
            at = lowered.find(b"content-length:")
            size = int(lowered[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._left) < end + 4 + size:
                return
            self._left = self._left[end + 4 + size :]
            yield head.split(b" ", 2)[1]

    def _misbehave(self, path: str) -> None:
        if path == "/visits":
            self._transport.write(http(200, json.dumps(self.visits).encode()))
            return
        fault, client, *_ = path.strip("/").split("/")
        key = f"{fault} {client}"
        self.visits[key].append(time.monotonic())
        if fault in FIRST and len(self.visits[key]) == 1:
            self._transport.write(FIRST[fault])
        elif fault == "dribble":
            task = asyncio.get_running_loop().create_task(self._dribble())
            self.running.add(task)
            task.add_done_callback(self.running.discard)
        else:
            self._transport.write(ALWAYS.get(fault, GOOD))

    async def _dribble(self) -> None:
        self._transport.write(b"HTTP/1.1 200 Said\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
        while not self._transport.is_closing():
            self._transport.write(b" ")
            await asyncio.sleep(BYTE_EVERY)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
