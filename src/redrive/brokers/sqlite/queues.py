"""Queues and lanes: how they come to be, and the ways by which messages get into them."""

import secrets
from collections.abc import Sequence

from redrive.brokers.sqlite.rows import Lane, Row, as_row, message_id
from redrive.brokers.sqlite.schema import MOST_LANES, NOBODY, row_id
from redrive.brokers.sqlite.transaction import Transaction
from redrive.core.errors import BrokerError, QueueNotFound
from redrive.core.message import Message, without_reserved
from redrive.core.redrive import SendBack


def join(transaction: Transaction, queue: str, group: str) -> Lane:
    """The group's lane, made if need be. The first group takes over what was waiting, later ones begin empty."""
    found = transaction.execute("SELECT id, incarnation FROM queue WHERE name = ?", (queue,)).fetchone()
    number, incarnation = found or make_queue(transaction, queue)
    lane = transaction.execute(
        "SELECT id FROM lane WHERE queue = ? AND grp IN (?, ?) ORDER BY grp DESC LIMIT 1", (number, group, NOBODY)
    ).fetchone()
    if lane is None:
        return Lane(_make_lane(transaction, number, group), queue, group, incarnation)
    transaction.execute("UPDATE lane SET grp = ? WHERE id = ? AND grp = ?", (group, lane[0], NOBODY))
    return Lane(lane[0], queue, group, incarnation)


def find_lane(transaction: Transaction, queue: str, group: str) -> Lane:
    """The group's lane; raises `QueueNotFound`."""
    found = transaction.execute(
        "SELECT lane.id, incarnation FROM lane JOIN queue ON queue.id = lane.queue WHERE name = ? AND grp = ?",
        (queue, group),
    ).fetchone()
    if found is None:
        raise QueueNotFound(f"no queue {queue!r} with a group {group!r} in this file")
    return Lane(found[0], queue, group, found[1])


def lanes_of(transaction: Transaction, queue: str) -> list[Lane]:
    """Every lane of a queue; none if there is no such queue."""
    rows = transaction.execute(
        "SELECT lane.id, grp, incarnation FROM lane JOIN queue ON queue.id = lane.queue WHERE name = ? ORDER BY 1",
        (queue,),
    )
    return [Lane(number, queue, group, incarnation) for number, group, incarnation in rows]


def make_queue(transaction: Transaction, queue: str) -> tuple[int, str]:
    """A new queue, whose one lane waits for the first group; its number and incarnation."""
    incarnation = secrets.token_hex(4)
    number = transaction.insert("INSERT INTO queue (name, incarnation) VALUES (?, ?)", (queue, incarnation))
    _make_lane(transaction, number, NOBODY)
    return number, incarnation


def enqueue(transaction: Transaction, queue: str, rows: Sequence[Row], *, due_at: int | None = None) -> list[str]:
    """Put messages into every lane of a queue, to be fetched at once or when due; return their ids."""
    number, incarnation, first = _take_numbers(transaction, queue, len(rows))
    waiting = 0 if due_at is not None else len(rows)
    lanes = transaction.execute(
        "UPDATE lane SET backlog = backlog + ? WHERE queue = ? RETURNING id", (waiting, number)
    ).fetchall()
    for (lane,) in lanes:
        start = row_id(lane, first)
        if due_at is None:
            transaction.executemany(
                "INSERT INTO fresh (id, published_at, expires_at, key, headers, body) VALUES (?, ?, ?, ?, ?, ?)",
                ((start + place, transaction.now, *row) for place, row in enumerate(rows)),
            )
        else:
            transaction.executemany(
                "INSERT INTO tracked (id, lane, state, due_at, published_at, expires_at, key, headers, body)"
                " VALUES (?, ?, 'due', ?, ?, ?, ?, ?, ?)",
                ((start + place, lane, due_at, transaction.now, *row) for place, row in enumerate(rows)),
            )
        transaction.touched.add(lane)
    return [message_id(incarnation, seq) for seq in range(first, first + len(rows))]


def enqueue_one(transaction: Transaction, message: Message) -> str:
    """Put one message into its queue as it is; return its id."""
    return enqueue(transaction, message.queue, [as_row(message)])[0]


def send_back(transaction: Transaction, item: SendBack) -> str:
    """Send a letter back, once per key; return its message id, the same one when repeated.

    Only a copy that goes to one group can speak for its letter: in the queue itself every group would.
    """
    key = f"back {item.once_key}"
    known = transaction.execute("SELECT message_id FROM once WHERE key = ?", (key,)).fetchone()
    if known is not None:
        return str(known[0])
    message = Message("", item.queue, item.body, without_reserved(item.headers), item.key)
    sent = (
        enqueue_one(transaction, message)
        if item.group is None
        else _into_lane(transaction, join(transaction, item.queue, item.group), as_row(message), item)
    )
    transaction.execute("INSERT INTO once VALUES (?, ?, ?)", (key, sent, transaction.now))
    return sent


def _into_lane(transaction: Transaction, lane: Lane, row: Row, item: SendBack) -> str:
    _, incarnation, seq = _take_numbers(transaction, lane.queue, 1)
    marks = (
        (item.generation, item.letter_id, item.attempts_allowed, item.origin or None)
        if item.marked
        else (0, None, None, None)
    )
    transaction.execute(
        "INSERT INTO tracked (id, lane, state, due_at, generation, letter_id, attempts_allowed, origin,"
        " published_at, expires_at, key, headers, body) VALUES (?, ?, 'due', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (row_id(lane.id, seq), lane.id, transaction.now, *marks, transaction.now, *row),
    )
    transaction.touched.add(lane.id)
    return message_id(incarnation, seq)


def _take_numbers(transaction: Transaction, queue: str, count: int) -> tuple[int, str, int]:
    """The queue's number and incarnation, and the first of `count` seqs that are given out now."""
    sql = "UPDATE queue SET tail = tail + ? WHERE name = ? RETURNING id, incarnation, tail"
    found = transaction.execute(sql, (count, queue)).fetchall()
    if not found:
        make_queue(transaction, queue)
        found = transaction.execute(sql, (count, queue)).fetchall()
    ((number, incarnation, tail),) = found
    return number, incarnation, tail - count + 1


def _make_lane(transaction: Transaction, queue: int, group: str) -> int:
    lane = transaction.insert("INSERT INTO lane (queue, grp) VALUES (?, ?)", (queue, group))
    if lane >= MOST_LANES:
        raise BrokerError(f"a file holds at most {MOST_LANES} groups of queues")
    return lane
