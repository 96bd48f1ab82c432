"""What the client hands over is taken in by the stretch, and nothing in it is passed over or taken twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka import Message as ClientMessage

from redrive.brokers.kafka import codes
from redrive.brokers.kafka.entry import NOWHERE, Entry, entry_in_lane
from redrive.brokers.kafka.reading import parted, partitions_of, reader_of, stretch_of, unbroken
from redrive.brokers.kafka.record import State, dump_state, last_state_in, load_state, read_of
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import Window
from redrive.core.message import Headers, Message

MILLIS = 1_767_225_600_000  # the first of January 2026


def record(offset: int, *, partition: int = 0, value: bytes | None = b"{}", **more: Any) -> ClientMessage:
    return ClientMessage(
        topic="orders", partition=partition, offset=offset, value=value, timestamp=(1, MILLIS + offset), **more
    )


def test_what_comes_is_parted_by_partition_in_its_order() -> None:
    came = [record(5), record(6), record(0, partition=1), record(7)]
    found = [(number, [each.offset() for each in some]) for number, some in partitions_of(came)]

    assert found == [(0, [5, 6]), (1, [0]), (0, [7])]
    assert [number for number, _ in partitions_of(came[:2])] == [0]


@pytest.mark.parametrize(
    ("offsets", "rows"),
    [
        ([3, 4, 5], [(3, 3)]),
        ([3, 4, 6, 7, 9], [(3, 2), (6, 2), (9, 1)]),  # between them stand the marks of transactions
        ([3, 4, 3, 4], [(3, 2), (3, 2)]),
        ([8], [(8, 1)]),
    ],
)
def test_a_row_ends_where_offsets_do_not_follow_each_other(offsets: list[int], rows: list[tuple[int, int]]) -> None:
    assert [(first, len(row)) for first, row in unbroken([record(offset) for offset in offsets])] == rows


def test_what_is_no_message_is_set_apart_and_the_messages_stay_in_their_order() -> None:
    end = ClientMessage(topic="orders", partition=0, offset=7, error=KafkaError(codes.PARTITION_EOF))
    messages, events = parted([record(5), end, record(6)])

    assert [each.offset() for each in messages] == [5, 6]
    assert [each.offset() for each in events] == [7]
    assert parted([record(5)])[1] == ()
    assert [*partitions_of(parted([end])[0])] == []


def test_a_row_with_a_header_of_ours_is_no_stretch() -> None:
    share = Share(("orders", 0), Window(0))
    ours = record(6, headers=[("name", b"value"), ("rd-due", b"1")])

    assert stretch_of([record(5), record(6, headers=[("name", b"value")])], share, 5) is not None
    assert stretch_of([record(5), ours], share, 5) is None


def test_a_stretch_has_the_id_the_key_the_headers_and_the_instant_of_each_message() -> None:
    share = Share(("orders", 2), Window(0))
    came = [record(9, key=b"a", headers=[("name", b"value"), ("empty", None)]), record(10, value=None)]
    stretch = stretch_of(came, share, 9)
    without_keys = stretch_of([record(9)], share, 9)

    assert stretch is not None
    assert (stretch.offset, stretch.end) == (9, 11)
    assert [(each.id, each.body, each.key, each.headers) for each in stretch.messages(0, 2)] == [
        ("orders-2-9", b"{}", b"a", (("name", b"value"), ("empty", b""))),
        ("orders-2-10", b"", None, ()),
    ]
    first, second = (each.published_at for each in stretch.messages(0, 2))
    assert first is not None
    assert second is not None
    assert (first.timestamp() * 1000, (second - first).total_seconds()) == (MILLIS + 9, 0.001)
    assert without_keys is not None
    assert without_keys.keys is None
    assert without_keys.headers is None


@pytest.mark.parametrize(
    "state", [{"id": "orders-0-1", "due": 1}, {"origin": "a \ud800 half"}, {"alone": {"until": 1}}]
)
def test_what_is_written_beside_a_copy_comes_back(state: dict[str, Any]) -> None:
    assert load_state(dump_state(state)) == state


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"\xff", b'"text"'])
def test_what_others_wrote_there_says_nothing(raw: bytes) -> None:
    assert load_state(raw) == {}


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KNOWN = Entry(
    Message("orders-0-1", "orders", b"{}", (("name", b"value"),), b"key", NOON, NOON + timedelta(days=1), "orders-0-0"),
    failures=2,
    crashes=1,
    generation=3,
    letter_id="letter",
    attempts_allowed=5,
    first_attempt_at=NOON,
    trail=b"trail",
    due_at=NOON + timedelta(seconds=1),
)


def in_lane(headers: Headers, *, body: bytes = b"{}", key: bytes | None = None) -> Entry:
    """As it is read, and it is the same for who looks closer."""
    found = record(7, value=body, key=key, headers=[*headers])
    entry = reader_of("orders..shop.lane", queue="orders")(found, NOWHERE, 0)
    assert vars(entry) == vars(entry_in_lane(read_of(found), queue="orders"))
    return entry


@pytest.mark.parametrize("origin", ["", "orders-0-0", "a \ud800 half"])
@pytest.mark.parametrize("trail", [b"", b"trail"])
@pytest.mark.parametrize("headers", [(), (("name", b"value"), ("name", b""))])
def test_a_copy_in_the_lane_is_the_entry_that_was_written(origin: str, trail: bytes, headers: Headers) -> None:
    entry = replace(KNOWN, message=KNOWN.message._replace(origin=origin, headers=headers), trail=trail)

    assert vars(in_lane(entry.headers(), key=b"key")) == vars(entry)


def test_a_copy_in_the_lane_is_read_in_whatever_order_its_headers_stand() -> None:
    written = KNOWN.headers()

    assert vars(in_lane(written[::-1], key=b"key")) == vars(KNOWN)


@pytest.mark.parametrize("state", [b'{"id":1}', b'{"id":"a","published":9' + b"9" * 18 + b"}", b"[]", b"{"])
def test_a_state_that_we_did_not_write_is_that_of_a_message_without_a_past(state: bytes) -> None:
    entry = in_lane((("name", b"value"), ("rd-state", state)))

    assert (entry.failures, entry.due_at, entry.message.headers) == (0, None, (("name", b"value"),))
    assert entry.message.published_at is not None


def test_what_has_not_happened_is_not_written() -> None:
    assert dump_state(State("orders-0-1", due=1)) == dump_state({"id": "orders-0-1", "due": 1})
    assert last_state_in((("rd-state", b'{"id":"orders-0-1","due":1,"later":2}'),)) == State("orders-0-1", due=1)
