import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.access import Role
from redrive.core.audit import AuditRecord
from redrive.core.errors import LetterNotFound, NotAllowed, StoreUnavailable
from redrive.core.letter import payload_hash
from redrive.core.life import LetterState, Life
from redrive.core.privacy import MASK
from redrive.core.query import Query
from redrive.core.stored import Edit, StoredLetter
from redrive.stores.memory import MemoryStore
from redrive.testing.conformance.store.bench import a_redrive
from redrive.triage import audit
from redrive.triage.access import Caller
from redrive.triage.desk import Desk
from redrive.triage.masking import (
    LARGEST,
    masked,
    masked_field,
    masked_operation,
    masked_row,
    masked_text,
    reveal,
    reveal_many,
)
from tests.unit.core.letters import AT, a_letter, an_attempt, headers, json_values
from tests.unit.triage.bench import Bench

KIM = Caller("kim", Role.OPERATOR)
VIC = Caller("vic", Role.VIEWER)


def stored(payload: bytes | None = b"{}", *, edits: tuple[Edit, ...] = (), **changes: Any) -> StoredLetter:
    return StoredLetter(letter=a_letter(payload, **changes), life=Life(LetterState.OPEN, 0), edits=edits)


def seen(payload: bytes) -> bytes:
    shown = masked(stored(payload)).letter.payload
    assert shown is not None
    return shown


def test_secrets_and_personal_data_in_a_payload_are_masked() -> None:
    payload = {"id": 1, "email": "x", "items": [{"to": "ann@example.com", "token": "abc"}], "address": {"street": "y"}}

    assert json.loads(seen(json.dumps(payload).encode())) == {
        "id": 1,
        "email": MASK,
        "items": [{"to": MASK, "token": MASK}],
        "address": MASK,
    }


def test_the_letter_itself_is_not_changed() -> None:
    before = stored(b'{"email": "ann@example.com"}', context={"email": "x"})
    masked(before)

    assert before == stored(b'{"email": "ann@example.com"}', context={"email": "x"})


@pytest.mark.parametrize(
    "payload", [b'{"b":1,  "a": [1.50, "\\u00e9"]}', b"[]", b"3", b"", "text\tü\n".encode(), b"\xef\xbb\xbfx"]
)
def test_a_content_with_nothing_to_hide_is_shown_byte_for_byte(payload: bytes) -> None:
    assert seen(payload) == payload


def test_a_letter_without_a_copy_stays_without_one() -> None:
    assert masked(stored(None)).letter.payload is None


@pytest.mark.parametrize(
    "payload",
    [b"\xff\xfe secret ann@example.com", b"\x00\x01", b"\x08\x96ann@example.com\x12", b"a" * (LARGEST + 1)],
)
def test_what_is_binary_or_large_is_told_by_size_and_hash(payload: bytes) -> None:
    assert seen(payload) == f"(hidden: {len(payload):,} bytes, sha256 {payload_hash(payload)})".encode()


def test_a_content_of_the_largest_size_is_still_looked_into() -> None:
    assert seen(b"ann@example.com".ljust(LARGEST)) == MASK.encode() + b" " * (LARGEST - 15)


def test_text_that_is_no_json_is_masked_as_text() -> None:
    assert seen(b'{"email": "x", "to": "ann@example.com", ') == b'{"email": ***, "to": "***", '


def test_json_inside_a_text_of_json_is_masked() -> None:
    inner = json.dumps({"address": "12 High St", "id": 4})

    assert json.loads(seen(json.dumps({"Message": inner}).encode())) == {"Message": f'{{"address": {MASK}, "id": 4}}'}


def test_a_value_cannot_hide_behind_another_of_the_same_name() -> None:
    assert seen(b'{"x": "ann@example.com", "x": 1}') == b'{"x": 1}'


def test_lone_surrogates_and_what_json_does_not_know_are_shown_as_json() -> None:
    shown = seen(b'{"email": 1, "s": "\\ud800 \\u0000", "n": NaN, "i": -Infinity}')

    assert json.loads(shown) == {"email": MASK, "s": "\ud800 \x00", "n": "nan", "i": "-inf"}


def test_deep_json_and_huge_numbers_raise_nothing() -> None:
    assert MASK.encode() in seen(b"[" * 100_000 + b'"ann@example.com"')
    assert MASK.encode() in seen(b'{"n": ' + b"9" * 5_000 + b', "email": "x"}')
    assert b"too deep" in seen(b"[" * 50 + b'"ann@example.com"' + b"]" * 50)


def test_headers_key_context_errors_attempts_and_edits_are_masked() -> None:
    letter = stored(
        key=b"ann@example.com",
        headers=(
            ("Authorization", b"Bearer x"),
            ("x-email", b"\xff"),
            ("trace", b"1"),
            ("raw", b"\xff"),
            ("b", b'{"ip":1}'),
        ),
        context={"user": {"phone": 1}, "order": 2},
        user_id="ann@example.com",
        tenant_id="acme",
        error_message="no ann@example.com",
        stack="line 1\nno ann@example.com",
        attempts=(an_attempt(error_message="no ann@example.com"), an_attempt(2, error_message="fine")),
        edits=(Edit(body=b'{"ssn": 1}', headers=(("cookie", b"x"), ("n", b"1")), by="kim", edited_at=AT),),
    )
    shown = masked(letter)

    assert shown.letter.key == MASK.encode()
    assert dict(shown.letter.headers) == {
        "Authorization": b"***",
        "x-email": b"***",
        "trace": b"1",
        "raw": f"(hidden: 1 bytes, sha256 {payload_hash(bytes([255]))})".encode(),
        "b": b'{"ip": "***"}',
    }
    assert shown.letter.context == {"user": {"phone": MASK}, "order": 2}
    assert (shown.letter.error_message, shown.letter.stack) == (f"no {MASK}", f"line 1\nno {MASK}")
    assert (shown.letter.user_id, shown.letter.tenant_id) == (MASK, "acme")
    assert [attempt.error_message for attempt in shown.letter.attempts] == [f"no {MASK}", "fine"]
    assert shown.edits[0].body == b'{"ssn": "***"}'
    assert shown.edits[0].headers == (("cookie", b"***"), ("n", b"1"))


async def test_a_letter_in_a_list_a_text_and_a_single_value_are_masked_too() -> None:
    bench = Bench()
    await bench.collect(1, error_message="no ann@example.com", user_id="ann@example.com")
    (row,) = (await bench.store.find(Query())).rows

    assert masked_row(row) == replace(row, error_message=f"no {MASK}", user_id=MASK)
    assert masked_text("no ann@example.com") == f"no {MASK}"
    assert [
        masked_field("payload.email", "x"),
        masked_field("payload.to", "a@b.de"),
        masked_field("queue", "mail"),
    ] == [*(MASK, MASK, "mail")]


SHORT = (
    *("error_type", "error_code", "original_message_id", "app_version"),
    *("node", "trace_id", "task_type", "severity", "content_type"),
)


async def test_the_short_texts_of_a_letter_are_masked_too() -> None:
    bench = Bench()
    words = {name: f"{name} of ann@example.com" for name in SHORT}
    attempt = an_attempt(error_message="fine")._replace(
        error_type="no ann@example.com", error_code="token=hunter2", node="ann@example.com"
    )
    await bench.collect(1, attempts=(attempt,), **words)
    (row,) = (await bench.store.find(Query())).rows
    shown = masked(await bench.get("letter-0")).letter

    assert {name: getattr(shown, name) for name in SHORT} == {name: f"{name} of {MASK}" for name in SHORT}
    assert (shown.letter_id, shown.fingerprint) == (row.letter_id, row.fingerprint)
    assert all(getattr(masked_row(row), name) == f"{name} of {MASK}" for name in SHORT[:4])
    (seen_attempt,) = shown.attempts
    assert (seen_attempt.error_type, seen_attempt.error_code, seen_attempt.node) == (
        *(f"no {MASK}", f"token={MASK}", MASK),
    )


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("queue=orders, state=open", "queue=orders, state=open"),
        ("text=x, state=open, state=open|parked", "text=***, state=open|parked"),
        ("queue=a, text=x, text=y, state=open", "queue=a, text=***, state=open"),
        ("text=x\ny", "text=***"),
        ("user_id=ann@example.com, context=full, state=open", "user_id=***, context=full, state=open"),
        ("lines 1 to 5 of a request by sam", "lines 1 to 5 of a request by sam"),
    ],
)
def test_a_selection_is_masked_and_what_was_searched_for_hidden_unless_the_caller_may_reveal(
    words: str, shown: str
) -> None:
    record = AuditRecord(seq=1, at=AT, who="kim", verb="letters.export", operation_id="1", selection=words)

    assert masked_operation(record, VIC).selection == shown
    assert masked_operation(record, KIM) == record


def test_what_people_wrote_with_an_operation_is_masked_for_who_may_not_reveal() -> None:
    said = "of ann@example.com"
    record = AuditRecord(
        seq=1, at=AT, who="kim", verb="letters.note", operation_id="1", detail={"note": said, "was": [said], "n": 1}
    )
    redrive = a_redrive(why=said)

    assert masked_operation(record, VIC).detail == {"note": "of ***", "was": ["of ***"], "n": 1}
    assert masked_operation(redrive, VIC).why == "of ***"
    assert (masked_operation(record, KIM), masked_operation(redrive, KIM)) == (record, redrive)


PLANTED = "ann.planted@example.com"
content = st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode())


@given(payload=content, key=st.none() | content, given_headers=headers, context=st.dictionaries(st.text(), json_values))
def test_any_content_can_be_shown(
    payload: bytes, key: bytes | None, given_headers: Any, context: dict[str, Any]
) -> None:
    letter = stored(payload, key=key, headers=given_headers, context=context)
    shown = masked(letter)

    assert isinstance(shown.letter.payload, bytes)
    assert shown.letter.payload.decode() is not None
    assert len(shown.letter.headers) == len(given_headers)
    assert masked(shown).letter.letter_id == letter.letter.letter_id


@given(before=st.binary(max_size=50), after=st.binary(max_size=50), value=json_values, name=st.text(max_size=8))
def test_a_planted_address_is_never_shown(before: bytes, after: bytes, value: object, name: str) -> None:
    wrapped = json.dumps([{name: {"to": PLANTED, "was": value}}]).encode()

    assert PLANTED.encode() not in seen(before + b" " + PLANTED.encode() + b" " + after)
    assert PLANTED.encode() not in seen(wrapped)
    assert PLANTED.encode() not in seen(wrapped[:-1])


async def test_a_revealed_letter_is_whole_and_on_record() -> None:
    bench = Bench()
    (letter,) = await bench.collect(1, headers=(("authorization", b"Bearer x"),))
    found = await reveal(Desk(bench.store, bench.clock, "kim"), KIM, "letter-0")
    records = [*reversed((await audit.find(bench.desk)).rows)]

    assert found.letter == letter
    assert [(one.verb, one.who, one.letter_id) for one in records] == [
        ("letters.reveal", "kim", ""),
        ("letters.reveal", "kim", "letter-0"),
    ]


async def test_letters_revealed_together_are_one_operation_that_names_each() -> None:
    bench = Bench()
    await bench.collect(2)
    await reveal_many(bench.desk, KIM, [])
    await reveal_many(bench.desk, KIM, [await bench.get("letter-0"), await bench.get("letter-1")])
    records = [*reversed((await audit.find(bench.desk)).rows)]

    assert [(one.letter_id, one.count) for one in records] == [("", 2), ("letter-0", None), ("letter-1", None)]


async def test_a_viewer_reveals_nothing() -> None:
    bench = Bench()
    await bench.collect(1)

    with pytest.raises(NotAllowed, match="reveal needs the role operator"):
        await reveal(bench.desk, VIC, "letter-0")
    with pytest.raises(NotAllowed):
        await reveal_many(bench.desk, VIC, [await bench.get()])
    assert (await audit.find(bench.desk)).rows == []


async def test_a_letter_that_is_not_there_is_not_revealed_nor_on_record() -> None:
    bench = Bench()

    with pytest.raises(LetterNotFound):
        await reveal(bench.desk, KIM, "nothing")
    assert (await audit.find(bench.desk)).rows == []


class Forgetful(MemoryStore):
    """A store that cannot write down what was done."""

    async def record(self, *_: object, **__: object) -> None:
        raise StoreUnavailable("the disk is full")


async def test_what_cannot_be_put_on_record_is_not_revealed() -> None:
    bench = Bench()
    store = Forgetful(clock=bench.clock)
    await store.collect([a_letter(letter_id="a")])

    with pytest.raises(StoreUnavailable):
        await reveal(Desk(store, bench.clock, "kim"), KIM, "a")
