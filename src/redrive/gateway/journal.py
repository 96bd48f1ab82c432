"""The journal: one line for each answer, retry and error, written by a thread, never by the event loop."""

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from redrive.core.errors import ConfigError

log = logging.getLogger(__name__)

FILES: Final = ("responses", "retries", "errors")
BUFFERED: Final = 10_000
LARGEST: Final = 64 * 1024 * 1024
OLDER: Final = 4
GATHERED: Final = 0.02

Row = Mapping[str, Any]


class Journal:
    """Appends rows to `gateway/responses.jsonl`, `retries.jsonl` and `errors.jsonl` in a folder.

    Writing a row never blocks and never raises: beyond `BUFFERED` waiting rows, or while the disk refuses, rows are
    dropped and counted. A file that has grown beyond `LARGEST` bytes becomes `.1`, and so on; the oldest goes. A line
    that a crash has cut short stays by itself: the next one begins on a new line. Safe from any thread.

    Raises `ConfigError` if the folder cannot be made.
    """

    def __init__(self, log_dir: str | os.PathLike[str], *, largest: int = LARGEST) -> None:
        self._folder = Path(log_dir) / "gateway"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"log_dir: expected a folder that can be written, got {log_dir}: {error}") from error
        self._largest = largest
        self._rows: deque[tuple[str, Row]] = deque()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._complained = False
        self.dropped = 0
        self._files: dict[str, IO[bytes]] = {}
        self._thread = threading.Thread(target=self._run, name="redrive-gateway-journal", daemon=True)
        self._thread.start()

    def write(self, file: str, row: Row) -> None:
        """Append a row to one of `FILES`, soon."""
        if self._ended.is_set() or len(self._rows) >= BUFFERED:
            self.dropped += 1
            return
        self._rows.append((file, row))
        if not self._wake.is_set():
            self._wake.set()

    async def aclose(self) -> None:
        """Write what is left, and end the thread. Idempotent."""
        self._ended.set()
        self._wake.set()
        if self._thread.is_alive():
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        closing = False
        while not closing:
            self._wake.wait()
            self._ended.wait(GATHERED)  # many rows in one write: a thread that wakes for each would hold up the loop
            self._wake.clear()
            closing = self._ended.is_set()
            self._flush()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _flush(self) -> None:
        lines: dict[str, list[bytes]] = {}
        count = 0
        while self._rows:
            file, row = self._rows.popleft()
            count += 1
            lines.setdefault(file, []).append(_line(row))
        why: object = "the disk is nearly full"
        try:
            for file, some in lines.items():
                count -= self._append(file, b"".join(some))
        except (OSError, ValueError) as error:
            why = error
            self._forget()
        self.dropped += count
        if count and not self._complained:
            self._complained = True
            log.warning("the gateway's journal cannot be written, rows are dropped: %s", why)

    def _append(self, name: str, lines: bytes) -> int:
        """Write rows; return how many of them are whole. One that was cut stays by itself, as after a crash."""
        file = self._files.get(name) or self._open(name)
        written = file.write(lines) or 0
        if written < len(lines):
            self._files.pop(name).close()  # whoever opens it again begins a new line
        elif file.tell() > self._largest:
            self._rotate(name)
        return lines.count(b"\n", 0, written)

    def _open(self, name: str) -> IO[bytes]:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        file = self._files[name] = path.open("ab+", buffering=0)
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        return file

    def _rotate(self, name: str) -> None:
        self._files.pop(name).close()
        for age in range(OLDER, 0, -1):
            newer = self._path(name, age - 1)
            if newer.exists():
                newer.replace(self._path(name, age))

    def _path(self, name: str, age: int = 0) -> Path:
        return self._folder / (f"{name}.jsonl" + (f".{age}" if age else ""))

    def _forget(self) -> None:
        files, self._files = self._files, {}
        for file in files.values():
            try:
                file.close()
            except OSError:
                continue


def _line(row: Row) -> bytes:
    try:
        return msgspec.json.encode(row) + b"\n"
    except (msgspec.MsgspecError, TypeError, ValueError):
        return msgspec.json.encode({name: str(value) for name, value in row.items()}) + b"\n"
