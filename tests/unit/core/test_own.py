"""Documents in the shape that we write are read in one step; read leniently, they would be the same letters."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.attempt import WrittenTrail
from redrive.core.letter import DeadLetter
from redrive.core.wire import document, from_json, to_json
from redrive.core.wire.own import read_own
from tests.unit.core.letters import a_letter, an_attempt, any_letter, json_values

WHOLE = a_letter(
    key=b"k",
    headers=(("content-type", b"application/json"),),
    attempts=(an_attempt(1), an_attempt(2, error_message="für \U0001f600")),
    context={"order": 1},
    user_id="u1",
    first_failed_at=an_attempt().ended_at,
)
STRANGE: dict[str, Any] = {
    "no trail": {"attempts": None},
    "a trail that is none": {"attempts": {"number": 1}},
    "an empty trail": {"attempts": []},
    "a row that is none": {"attempts": ["no row", {"number": 1}]},
    "no zone": {"failed_at": "2026-03-01T12:00:00"},
    "another zone": {"failed_at": "2026-03-01T12:00:00+05:30", "received_at": "2026-03-01T12:00:00Z"},
    "an instant before all others": {"failed_at": "2026-03-01T12:00:00Z", "received_at": "0001-01-01T00:00:00+23:00"},
    "milliseconds": {"failed_at": 1772366400000},
    "an empty word": {"user_id": "", "error_code": ""},
    "a word that is a number": {"user_id": 7},
    "no text": {"kind": "", "error_type": ""},
    "null for a text": {"queue": None, "node": None},
    "counts that are none": {"pid": -1, "retry_count": "3", "generation": 1.0},
    "a count beyond all": {"pid": 2**40},
    "a reason from tomorrow": {"reason": "boredom"},
    "bytes": {"payload_base64": "/w==", "key_base64": "AP8="},
    "headers that are an object": {"headers": {"a": "b"}},
    "a header of bytes": {"headers": [["a", {"base64": "/w=="}], ["b", "c"]]},
    "a header that is none": {"headers": [["a"], "b", ["c", "d"]]},
    "a name from tomorrow": {"mood": {"deep": ["down"]}},
    "a context that is none": {"context": ["no"]},
    "a context of numbers": {"context": {"large": 2**70, "small": -0.0, "whole": 1.0}},
    "what UTF-8 cannot say": {"error_message": "\ud800"},
}


def leniently(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> DeadLetter:
    with monkeypatch.context() as patched:
        patched.setattr(document, "read_own", lambda _: None)
        return from_json(raw)


@pytest.mark.parametrize("changes", STRANGE.values(), ids=STRANGE)
def test_a_strange_document_is_the_letter_that_lenient_reading_finds(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = json.dumps({**json.loads(to_json(WHOLE)), **changes}).encode()

    assert from_json(raw) == leniently(raw, monkeypatch)


@given(any_letter(), st.dictionaries(st.sampled_from([*json.loads(to_json(WHOLE))]), json_values, max_size=3))
def test_any_document_is_the_letter_that_lenient_reading_finds(letter: DeadLetter, changes: dict[str, Any]) -> None:
    raw = json.dumps({**json.loads(to_json(letter)), **changes}).encode()
    with pytest.MonkeyPatch.context() as patched:
        try:
            expected: object = leniently(raw, patched)
        except ValueError as error:
            expected = str(error)
    try:
        found: object = from_json(raw)
    except ValueError as error:
        found = str(error)

    assert found == expected


def test_our_own_documents_are_read_in_one_step_and_their_trails_when_somebody_asks() -> None:
    raw = to_json(WHOLE)
    letter = from_json(raw)

    assert read_own(raw) is not None
    assert isinstance(letter.attempts, WrittenTrail)
    assert letter.attempts.raw in raw
    assert letter == WHOLE


@pytest.mark.parametrize("raw", [b"\xff", b"[]", b"", b'{"letter_id":1', b"[" * 100_000], ids=range(5))
def test_what_is_no_document_of_ours_is_none(raw: bytes) -> None:
    assert read_own(raw) is None


def test_a_trail_that_is_not_utf_8_is_found_out_at_once() -> None:
    raw = to_json(WHOLE).replace("für".encode(), "für".encode("latin-1"))

    assert read_own(raw) is None
    with pytest.raises(ValueError, match="utf-8"):
        from_json(raw)


def test_spaces_between_the_parts_lose_no_attempt() -> None:
    raw = json.dumps(json.loads(to_json(WHOLE)), indent=2).encode()

    assert read_own(raw) is not None
    assert from_json(raw) == WHOLE
