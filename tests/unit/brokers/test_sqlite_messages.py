"""What the file keeps of a message, and how exactly it counts."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.brokers.sqlite import SqliteBroker, committer
from redrive.brokers.sqlite.connection import connect
from redrive.brokers.sqlite.errors import translate
from redrive.brokers.sqlite.rows import dump_headers, load_headers
from redrive.brokers.sqlite.transaction import as_instant, as_micros
from redrive.core.duration import NOW
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.message import Message
from redrive.core.outcome import Settlement
from redrive.testing.conformance.bench import Bench

COUNTED = """
    SELECT backlog, (SELECT count(*) FROM fresh WHERE id > lane.id << 43 | cursor AND id < lane.id + 1 << 43)
    FROM lane
"""


@given(st.lists(st.tuples(st.text(), st.binary())).map(tuple))
def test_headers_come_back_as_they_were(headers: tuple[tuple[str, bytes], ...]) -> None:
    assert load_headers(dump_headers(headers)) == headers


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_come_back_as_they_were(at: datetime) -> None:
    assert as_instant(as_micros(at)) == at


async def test_every_group_sees_a_message_under_the_id_that_publish_returned(bench: Bench) -> None:
    workers = [await bench.worker(), await bench.worker(group="audit")]
    (published,) = await bench.publish(b"1")

    assert [(await bench.take_one(worker)).message.id for worker in workers] == [published, published]


async def test_what_waits_is_counted_exactly_whatever_happens_to_it(bench: Bench, file: Path) -> None:
    worker, _ = await bench.worker(), await bench.worker(group="audit")
    await bench.publish(*(b"%d" % number for number in range(10)))
    await bench.publish(b"later", delay=timedelta(minutes=1))
    acked, failed, dead, released, _ = await bench.take(worker, 5)
    await worker.settle([Settlement(acked), bench.retry(failed), bench.give_up(dead, worker)])
    await worker.release([released])
    await bench.let_die(seen_by=worker)
    await bench.given_up(b"another")
    first, _ = await bench.dlq.peek()
    await bench.dlq.remove(first.entry_id)
    with closing(sqlite3.connect(file)) as connection:
        counted = connection.execute(COUNTED).fetchall()

    assert len(counted) == 3
    assert [(kept, found) for kept, found in counted if kept != found] == []


async def test_an_item_that_cannot_be_written_is_refused_and_the_rest_go_through(bench: Bench) -> None:
    worker = await bench.worker()
    await bench.publish(b"1", b"2", b"3")
    first, second, third = await bench.take(worker, 3)
    odd = replace(bench.letter(second), key="not bytes")  # type: ignore[arg-type]
    answers = await worker.settle(
        [bench.give_up(first, worker), bench.give_up(second, worker)._replace(letter=odd), Settlement(third)]
    )

    assert [answer.status for answer in answers] == ["done", "refused", "done"]
    assert answers[1].why
    assert await bench.counts() == {"in_flight": 1, "dead": 1}


async def test_a_message_larger_than_sqlite_can_keep_is_a_clear_error(
    broker: SqliteBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited(path: str) -> sqlite3.Connection:
        connection = connect(path)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        return connection

    monkeypatch.setattr(committer, "connect", limited)
    with pytest.raises(BrokerError, match="larger than SQLite can keep") as caught:
        await broker.publish("orders", [Message("", "orders", bytes(1_000_001))])

    assert not isinstance(caught.value, BrokerUnavailable)


async def test_the_same_delivery_settled_twice_in_one_call_keeps_its_first_outcome(bench: Bench) -> None:
    worker = await bench.worker()
    await bench.publish(b"1", b"2")
    first, second = await bench.take(worker, 2)
    answers = await worker.settle(
        [bench.retry(first, timedelta(minutes=1)), Settlement(first), Settlement(second), bench.retry(second)]
    )

    assert [answer.status for answer in answers] == ["done", "repeated", "done", "repeated"]
    assert await bench.counts() == {"scheduled": 1}


async def test_a_limit_of_nothing_fetches_nothing(bench: Bench) -> None:
    worker = await bench.worker()
    await bench.publish(b"1")

    assert not await worker.fetch(0, wait=NOW)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_BUSY, BrokerUnavailable),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, BrokerUnavailable),
        (sqlite3.SQLITE_FULL, BrokerUnavailable),
        (sqlite3.SQLITE_IOERR_FSYNC, BrokerUnavailable),
        (sqlite3.SQLITE_CANTOPEN, BrokerUnavailable),
        (sqlite3.SQLITE_READONLY, BrokerUnavailable),
        (sqlite3.SQLITE_CORRUPT, BrokerError),
        (sqlite3.SQLITE_NOTADB, BrokerError),
        (sqlite3.SQLITE_TOOBIG, BrokerError),
        (sqlite3.SQLITE_MISUSE, BrokerError),
    ],
)
def test_what_sqlite_raises_becomes_ours(code: int, expected: type[BrokerError]) -> None:
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorcode = code
    ours = translate(error, path="queue.db")

    assert type(ours) is expected
    assert "queue.db" in str(ours)
    assert "as SQLite says it" in str(ours)


def test_what_is_not_sqlites_stays_what_it_is() -> None:
    error = LookupError("ours")

    assert translate(error, path="queue.db") is error


async def test_an_instant_beyond_the_calendar_is_the_last_one(bench: Bench, file: Path) -> None:
    await bench.worker()
    await bench.publish(b"1", delay=timedelta(hours=1))
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE tracked SET due_at = ?", (10**18,))

    depth = await bench.depth()

    assert (depth.scheduled, depth.next_due_at) == (1, datetime.max.replace(tzinfo=UTC))
