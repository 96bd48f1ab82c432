import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.brokers.redis.entry import from_millis, published_at, read_entry, write_entry
from redrive.brokers.redis.lane import read_lane, write_lane
from redrive.brokers.redis.pieces import in_pieces, joined
from redrive.core.message import Message
from redrive.core.redrive import SendBack
from redrive.core.wire import read_letter

AT = datetime(2030, 1, 1, 12, 0, 0, 1000, tzinfo=UTC)
ID = b"%d-7" % (AT.timestamp() * 1000)
PAYLOAD = b"payload"

FOREIGN = st.lists(
    st.tuples(st.binary(max_size=6) | st.sampled_from([b"payload", b"data", b"colour"]), st.binary(max_size=12)),
    min_size=1,
    max_size=6,
).filter(lambda pairs: not any(name.startswith(b"rd-") for name, _ in pairs))


def read(*fields: bytes, payload: bytes = PAYLOAD) -> Message:
    return read_entry(ID, fields, queue="orders", payload=payload)


def test_the_payload_field_is_the_body_and_every_other_field_a_header() -> None:
    message = read(b"payload", b"1", b"colour", b"red", b"colour", b"\xff")

    assert (message.id, message.queue, message.published_at) == (ID.decode(), "orders", AT)
    assert (message.body, message.headers) == (b"1", (("colour", b"red"), ("colour", b"\xff")))


def test_the_name_of_the_payload_field_can_be_chosen() -> None:
    assert read(b"data", b"1", payload=b"data").body == b"1"


def test_without_a_payload_field_the_body_is_the_field_map() -> None:
    message = read(b"id", b"7", b"name", b"caf\xc3\xa9", b"raw", b"\xff")

    assert json.loads(message.body) == {"id": "7", "name": "café", "raw": "\\xff"}


def test_the_whole_field_map_can_be_asked_for() -> None:
    assert json.loads(read(b"payload", b"1", b"*", b"2", payload=b"*").body) == {"payload": "1", "*": "2"}


@given(FOREIGN, st.sampled_from([b"payload", b"data", b"*"]))
def test_every_entry_goes_back_as_it_came(pairs: list[tuple[bytes, bytes]], payload: bytes) -> None:
    fields = [part for pair in pairs for part in pair]

    assert write_entry(read(*fields, payload=payload), payload=payload) == fields


def test_the_payload_keeps_its_place_where_what_a_letter_says_of_itself_is_taken_away() -> None:
    message = read(b"z", b"1", b"error_type", b"KeyError", b"user_id", b"7", b"payload", b"{}", b"a", b"2")
    letter = read_letter(message.body, message.headers, queue="orders", entry_id="1-1", now=AT)
    back = Message("", "orders", letter.payload or b"", letter.headers)

    assert write_entry(back, payload=PAYLOAD) == [b"z", b"1", b"payload", b"{}", b"a", b"2"]


@given(FOREIGN, st.sampled_from([b"payload", b"data", b"*"]))
def test_every_entry_comes_through_the_lane_as_it_was(pairs: list[tuple[bytes, bytes]], payload: bytes) -> None:
    message = read(*[part for pair in pairs for part in pair], payload=payload)
    item = SendBack("a", 1, "orders", message.body, message.headers, b"\x00key", group="shop", origin="1-1")
    fields = write_lane(item, largest=16)
    back = read_lane(ID, fields, queue="orders", payload=payload)

    assert max(map(len, fields[1::2])) <= 16
    assert (back.message.body, back.message.headers, back.message.key) == (message.body, message.headers, b"\x00key")
    assert (back.letter_id, back.generation, back.message.origin, back.message.id) == (
        *("a", 1, "1-1"),
        f"back-{ID.decode()}",
    )


def test_an_edited_field_map_is_written_as_it_was_edited() -> None:
    message = read(b"id", b"7", b"name", b"x")
    edited = message._replace(body=b'{"id": 8, "name": "y", "tags": ["a"]}')

    assert write_entry(edited, payload=PAYLOAD) == [b"id", b"8", b"name", b"y", b"tags", b'["a"]']


@pytest.mark.parametrize("body", [b"no JSON", b"[1]", b"{}", b"[" * 100_000])
def test_a_field_map_edited_into_something_else_becomes_the_payload(body: bytes) -> None:
    message = read(b"id", b"7")._replace(body=body)

    assert write_entry(message, payload=PAYLOAD) == [b"payload", body]


@pytest.mark.parametrize("expires_at", [AT, AT + timedelta(microseconds=1), datetime(1999, 1, 1, tzinfo=UTC)])
def test_key_and_expiry_travel_beside_the_headers_and_are_not_among_them(expires_at: datetime) -> None:
    sent = Message("", "orders", b"1", (("colour", b"red"),), b"\x00", expires_at=expires_at)
    message = read(*write_entry(sent, payload=PAYLOAD))

    assert (message.key, message.expires_at, message.headers) == (b"\x00", expires_at, sent.headers)


@pytest.mark.parametrize("raw", [b"soon", b"", b"1e999", b"-1e30", b"nan", b"\xff"])
def test_an_expiry_that_is_none_is_passed_over(raw: bytes) -> None:
    assert read(b"payload", b"1", b"rd-expires", raw).expires_at is None


def test_a_message_that_was_delayed_has_the_id_it_was_given_and_the_time_it_was_published() -> None:
    message = read(b"payload", b"1", b"rd-id", b"1000-abc-0", b"rd-entry", b"1893499200001-7")

    assert (message.id, message.published_at, message.headers) == ("1000-abc-0", from_millis(1000), ())


def test_an_id_that_was_given_to_another_entry_is_not_taken() -> None:
    for copied in ((), (b"rd-entry", b"1893499200001-6")):
        message = read(b"payload", b"1", b"rd-id", b"1000-abc-0", *copied)

        assert (message.id, message.headers) == ("1893499200001-7", ())


def test_marks_of_a_redrive_are_not_headers() -> None:
    assert read(b"payload", b"1", b"rd-letter", b"a", b"rd-generation", b"1", b"colour", b"red").headers == (
        ("colour", b"red"),
    )


@pytest.mark.parametrize("entry_id", [b"0-1", b"18446744073709551615-0", b"made-up"])
def test_an_id_that_somebody_made_up_is_no_error(entry_id: bytes) -> None:
    assert published_at(entry_id) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("payload", [b"data", b"*"])
def test_a_dead_letter_has_its_payload_under_its_own_name_whatever_the_queue_calls_it(payload: bytes) -> None:
    message = read(b"payload", b"1", b"original_message_id", b"1-1", b"error_type", b"ValueError", payload=payload)

    assert message.body == b"1"
    assert dict(message.headers) == {"original_message_id": b"1-1", "error_type": b"ValueError"}


def test_a_letter_in_pieces_is_put_together() -> None:
    rest = [b"letter_id", b"a", b"reason", b"x", b"original_message_id", b""]
    fields = in_pieces([b"payload", b"1234567890", *rest], largest=4)
    message = read(*fields)

    assert fields == [b"payload", b"1234", b"payload", b"5678", b"payload", b"90", *rest]
    assert message.body == b"1234567890"
    assert message.headers == (("letter_id", b"a"), ("reason", b"x"), ("original_message_id", b""))


def test_a_message_that_only_names_a_letter_keeps_its_headers_apart() -> None:
    headers = (("letter_id", b"a"), ("colour", b"red"), ("colour", b"blue"))

    assert read(*write_entry(Message("", "orders", b"1", headers), payload=PAYLOAD)).headers == headers


@given(st.dictionaries(st.binary(max_size=3), st.binary(max_size=20), max_size=4), st.integers(1, 9))
def test_pieces_are_what_they_were_before(fields: dict[bytes, bytes], largest: int) -> None:
    flat = [part for pair in fields.items() for part in pair]
    pieces = in_pieces(flat, largest=largest)

    assert joined(pieces) == flat
    assert all(len(value) <= largest for value in pieces[1::2])
