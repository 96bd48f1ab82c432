"""The journal: who did what, in lines that survive kill -9."""

import json
import os
import threading
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Word(StrEnum):
    """What is noted."""

    BORN = "born"  # a process, with its role as note
    INVOKE = "invoke"  # a producer is about to publish
    OK = "ok"  # its publish was acknowledged
    UNKNOWN = "unknown"  # its publish raised: the message may be there or not
    START = "start"  # a handler starts
    DONE = "done"  # its effect is made
    FAIL = "fail"  # it is about to raise
    CUT = "cut"  # it was cancelled
    FENCED = "fenced"  # the broker said that the delivery had passed to somebody else
    FAULT = "fault"  # the nemesis struck, with the kind as note; the pid is the victim's
    POINT = "point"  # a process reached a named point that was armed, and dies or stops there


class Entry(NamedTuple):
    """One line. `attempt`, `generation` and `origin` are those of the delivery a handler works on."""

    at: float
    pid: int
    word: Word
    id: str = ""
    attempt: int = 0
    generation: int = 0
    origin: str = ""
    note: str = ""


class Journal:
    """A file that many processes append to: one `write` per line, so lines neither mix nor get lost."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, word: Word, **facts: str | int) -> None:
        """Write one line; when this returns, no kill can take it back."""
        self.write(Entry(time.time(), **{"pid": os.getpid(), "word": word, **facts}))  # type: ignore[arg-type]

    def write(self, entry: Entry) -> None:
        """Write an entry as it is."""
        os.write(self._file, json.dumps(entry).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Reader:
    """Reads a journal while it grows. Safe from many threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._at = 0
        self._entries: list[Entry] = []
        self._by_word: dict[Word, list[Entry]] = {word: [] for word in Word}

    def entries(self) -> Sequence[Entry]:
        """Every complete line by now."""
        self._read()
        return self._entries

    def of(self, word: Word) -> Sequence[Entry]:
        """The lines with this word."""
        self._read()
        return self._by_word[word]

    def _read(self) -> None:
        with self._lock, self._path.open("rb") as file:
            file.seek(self._at)
            new = file.read()
            complete = new[: new.rfind(b"\n") + 1]
            self._at += len(complete)
            for line in complete.splitlines():
                at, pid, word, *rest = json.loads(line)
                entry = Entry(at, pid, Word(word), *rest)
                self._entries.append(entry)
                self._by_word[entry.word].append(entry)
