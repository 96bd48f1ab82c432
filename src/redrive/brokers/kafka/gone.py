"""What has left a DLQ. A log cannot forget one entry, so the ledger says it, until the log itself has forgotten."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final

from redrive.brokers.kafka.book import Book, Change, Row, Rows
from redrive.brokers.kafka.record import Place, Read

GONE: Final = "gone:"
"""Before the id of an entry: it has left; the value says how."""
LETTER: Final = "letter:"
"""Before the name of a DLQ and of a letter: the value is the entry under which it was written."""
REDRIVEN: Final = Row(b"redriven")
REMOVED: Final = Row(b"removed")
_AT_ONCE: Final = 1000


def how_it_left(row: Row) -> str:
    """For whoever asks for an entry that is gone. A collector leaves its own name there."""
    if row == REDRIVEN:
        return "was redriven already"
    return "was removed" if row == REMOVED else "was collected: redrive it from the store"


class Looks:
    """Up to where everything has left, as far as anybody has looked: that need not be read again.

    What has left does not come back, so a look begins where the last one found something. Safe for many threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._first: dict[Place, int] = {}

    def spans(self, starts: Mapping[Place, int], ends: Mapping[Place, int]) -> dict[Place, tuple[int, int]]:
        """What is to be read. Somebody who begins a DLQ again begins it at 0."""
        with self._lock:
            known = {place: first for place in ends if (first := self._first.get(place, 0)) <= ends[place]}
        return {place: (max(starts[place], known.get(place, 0)), end) for place, end in ends.items()}

    def found(self, spans: Mapping[Place, tuple[int, int]], reads: Sequence[Read]) -> None:
        """These are there, and nothing else in these spans."""
        first = {place: end for place, (_, end) in spans.items()}
        for read in reads:
            place = (read.topic, read.partition)
            first[place] = min(first[place], read.offset)
        with self._lock:
            self._first |= first


def strike_old(ledger: Book, starts: Mapping[Place, int]) -> None:
    """Strike out what the ledger says of entries that these logs have forgotten: before `starts` nothing is left."""
    if not _old(ledger.rows, starts):  # as it was at the last look: who changes it fences others
        return

    def decide(rows: Rows) -> Change | None:
        old = _old(rows, starts)[:_AT_ONCE]
        return Change(dict.fromkeys(old)) if old else None

    ledger.change(decide)


def _old(rows: Rows, starts: Mapping[Place, int]) -> list[str]:
    """Both the entry and its letter, which else would pass for one that is still there; the letter first."""

    def is_old(entry_id: str) -> bool:
        topic, number, offset = entry_id.rsplit("-", 2)
        return int(offset) < starts.get((topic, int(number)), 0)

    topics = {topic for topic, _ in starts}
    letters = [
        key
        for key, row in rows.items()
        if key.startswith(LETTER) and key.split(":")[1] in topics and is_old(row.value.decode())
    ]
    return letters + [key for key in rows if key.startswith(GONE) and is_old(key.removeprefix(GONE))]
