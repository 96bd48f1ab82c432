"""What has left a DLQ. A log cannot forget one entry, so the ledger says it, until the log itself has forgotten."""

from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Final

from redrive.brokers.kafka.book import Book, Change, Row, Rows
from redrive.brokers.kafka.record import Place, Read

GONE: Final = "gone:"
"""Before the id of an entry: it has left; the value says how."""
LETTER: Final = "letter:"
"""Before the name of a DLQ and of a letter: the value is the entry under which it was written."""
LIFE: Final = "life:"
"""Before the name of a DLQ: the value is the id of that life of its topic of which the ledger speaks."""
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
        self._first: dict[tuple[str, Place], int] = {}

    def spans(self, life: str, starts: Mapping[Place, int], ends: Mapping[Place, int]) -> dict[Place, tuple[int, int]]:
        """What is to be read, in this life of a DLQ."""
        with self._lock:
            known = {place: first for place in ends if (first := self._first.get((life, place), 0)) <= ends[place]}
        return {place: (max(starts[place], known.get(place, 0)), end) for place, end in ends.items()}

    def found(self, life: str, spans: Mapping[Place, tuple[int, int]], reads: Sequence[Read]) -> None:
        """These are there, and nothing else in these spans."""
        first = {(life, place): end for place, (_, end) in spans.items()}
        for read in reads:
            place = (life, (read.topic, read.partition))
            first[place] = min(first[place], read.offset)
        with self._lock:
            self._first |= first


def life_in(rows: Rows, dlq: str) -> str:
    """Of which life of a DLQ the ledger speaks; empty if nobody has said so yet."""
    row = rows.get(f"{LIFE}{dlq}")
    return "" if row is None else row.value.decode()


def begin_life(ledger: Book, dlq: str, life: str) -> None:
    """Have the ledger speak of this life of a DLQ, and no more of a former one: that topic was deleted."""
    while life_in(ledger.refresh(), dlq) != life:
        ledger.change(partial(_next_life, dlq=dlq, life=life))


def _next_life(rows: Rows, *, dlq: str, life: str) -> Change | None:
    if (said := life_in(rows, dlq)) == life:
        return None
    former = _said_of(rows, {dlq}) if said else []
    strikes: dict[str, Row | None] = dict.fromkeys(former[:_AT_ONCE])
    return Change(strikes if len(former) > _AT_ONCE else {**strikes, f"{LIFE}{dlq}": Row(life.encode())})


def strike_old(ledger: Book, starts: Mapping[Place, int]) -> None:
    """Strike out what the ledger says of entries that these logs have forgotten: before `starts` nothing is left."""
    if not _old(ledger.rows, starts):  # as it was at the last look: who changes it fences others
        return

    def decide(rows: Rows) -> Change | None:
        old = _old(rows, starts)[:_AT_ONCE]
        return Change(dict.fromkeys(old)) if old else None

    ledger.change(decide)


def _old(rows: Rows, starts: Mapping[Place, int]) -> list[str]:
    def is_old(key: str) -> bool:
        topic, number, offset = _entry(key, rows[key]).rsplit("-", 2)
        return int(offset) < starts.get((topic, int(number)), 0)

    return [key for key in _said_of(rows, {topic for topic, _ in starts}) if is_old(key)]


def _said_of(rows: Rows, dlqs: set[str]) -> list[str]:
    """Both the entries and their letters, which else would pass for such as are still there; the letters first."""
    said = [key for key in rows if key.startswith((LETTER, GONE)) and _entry(key, rows[key]).rsplit("-", 2)[0] in dlqs]
    return sorted(said, reverse=True)


def _entry(key: str, row: Row) -> str:
    return row.value.decode() if key.startswith(LETTER) else key.removeprefix(GONE)
