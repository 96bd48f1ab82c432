"""Letters in a DLQ, which is an ordinary queue: written once, looked at, taken out of every lane at once."""

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple

from redrive.brokers.sqlite.hold import finish, note_given_back
from redrive.brokers.sqlite.queues import enqueue_one, lanes_of
from redrive.brokers.sqlite.rows import Lane, load_headers, message_id
from redrive.brokers.sqlite.schema import SEQ_MASK, row_id
from redrive.brokers.sqlite.transaction import Transaction, as_instant
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.wire import entry_body, to_fields

ENTRIES: Final = "SELECT id, published_at, key, headers, body FROM {} WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"


class Found(NamedTuple):
    """An entry of a DLQ: its number in the queue, and its message."""

    seq: int
    message: Message


def put_letter(transaction: Transaction, dlq: str, letter: DeadLetter) -> None:
    """Write a letter, unless the same generation of it is there already."""
    key = f"letter {dlq} {letter.letter_id}:{letter.generation}"
    known = transaction.execute("SELECT message_id FROM once WHERE key = ?", (key,)).fetchone()
    if known is not None and find(transaction, dlq, known[0]) is not None:
        return
    fields = to_fields(letter, dlq_published_at=transaction.at)
    sent = enqueue_one(transaction, Message("", dlq, entry_body(letter), fields, letter.key))
    transaction.execute("INSERT OR REPLACE INTO once VALUES (?, ?, ?)", (key, sent, transaction.now))


def find(transaction: Transaction, dlq: str, entry_id: str) -> Found | None:
    """The entry of this name, if it is there."""
    lanes = lanes_of(transaction, dlq)
    seq = _seq(lanes, entry_id)
    if seq is None:
        return None
    found = _between(transaction, lanes, first=seq, last=seq, count=1)
    return found[0] if found else None


def page(transaction: Transaction, dlq: str, count: int, start: str | None) -> list[Found]:
    """The oldest entries, from this one on; none from a name that is not of this DLQ."""
    lanes = lanes_of(transaction, dlq)
    first = 0 if start is None else _seq(lanes, start)
    return [] if first is None or count < 1 else _between(transaction, lanes, first=first, last=SEQ_MASK, count=count)


def length(transaction: Transaction, dlq: str) -> int:
    """How many entries there are, each counted once however many groups read the DLQ."""
    lanes = lanes_of(transaction, dlq)
    if len(lanes) == 1:
        return _length_of(lanes[0], transaction)
    seqs: set[int] = set()
    for lane in lanes:
        for table in ("fresh", "tracked"):
            rows = transaction.execute(
                f"SELECT id & ? FROM {table} WHERE id BETWEEN ? AND ?",  # noqa: S608 - one of our tables
                (SEQ_MASK, lane.first, lane.last),
            )
            seqs.update(seq for (seq,) in rows)
    return len(seqs)


def take_out(transaction: Transaction, dlq: str, seq: int) -> None:
    """Remove an entry from every lane of its DLQ; whoever had it in hand has lost it."""
    for lane in lanes_of(transaction, dlq):
        row = row_id(lane.id, seq)
        if transaction.execute("DELETE FROM fresh WHERE id = ?", (row,)).rowcount:
            holds = transaction.execute(
                "SELECT id FROM hold WHERE lane = ? AND ? BETWEEN lo AND hi", (lane.id, row)
            ).fetchall()
            if not holds:
                transaction.execute("UPDATE lane SET backlog = backlog - 1 WHERE id = ?", (lane.id,))
        else:
            holds = transaction.execute("SELECT hold FROM tracked WHERE id = ? AND hold NOTNULL", (row,)).fetchall()
            transaction.execute("DELETE FROM tracked WHERE id = ?", (row,))
        note_given_back(transaction, [(hold, row) for (hold,) in holds])
        finish(transaction, [hold for (hold,) in holds])


def _seq(lanes: Sequence[Lane], entry_id: str) -> int | None:
    incarnation, _, number = entry_id.partition("-")
    if not lanes or incarnation != lanes[0].incarnation or not (number.isascii() and number.isdigit()):
        return None
    seq = int(number[:20])
    return seq if seq <= SEQ_MASK else None


def _between(transaction: Transaction, lanes: Sequence[Lane], *, first: int, last: int, count: int) -> list[Found]:
    """Entries by number, each once, whichever lanes and tables they are in."""
    stretches = [
        transaction.execute(ENTRIES.format(table), (row_id(lane.id, first), row_id(lane.id, last), count)).fetchall()
        for lane in lanes
        for table in ("fresh", "tracked")
    ]
    found: dict[int, tuple[Any, ...]] = {}
    for row in merge(*stretches, key=_seq_of):
        found.setdefault(_seq_of(row), row)
    return [_entry(lanes[0], row) for row in islice(found.values(), count)]


def _seq_of(row: tuple[Any, ...]) -> int:
    return int(row[0]) & SEQ_MASK


def _entry(lane: Lane, row: tuple[Any, ...]) -> Found:
    _, published_at, key, headers, body = row
    seq = _seq_of(row)
    name = message_id(lane.incarnation, seq)
    return Found(seq, Message(name, lane.queue, body, load_headers(headers), key, as_instant(published_at)))


def _length_of(lane: Lane, transaction: Transaction) -> int:
    """One lane: what waits is counted already, what is in hand is little."""
    cursor, backlog = transaction.execute("SELECT cursor, backlog FROM lane WHERE id = ?", (lane.id,)).fetchone()
    (in_hand,) = transaction.execute(
        "SELECT count(*) FROM fresh WHERE id BETWEEN ? AND ?", (lane.first, row_id(lane.id, cursor))
    ).fetchone()
    (tracked,) = transaction.execute("SELECT count(*) FROM tracked WHERE lane = ?", (lane.id,)).fetchone()
    return int(backlog + in_hand + tracked)
