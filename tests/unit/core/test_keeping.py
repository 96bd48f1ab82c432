"""How much of a message its letter keeps."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.ciphers.aes_gcm import AesGcm
from redrive.core.context import ContextRule
from redrive.core.errors import ConfigError, DeadLetterError
from redrive.core.keeping import PayloadMode, digest_rule, digested, no_payload
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.message import Headers, Message
from redrive.core.query import searchable_text
from redrive.core.seal import named_key, open_letter, seal, sealed_by
from redrive.core.wire import from_fields, from_json, read_letter, to_fields, to_json
from redrive.core.wire.digest import entry_body
from redrive.core.wire.record import SEALED
from tests.unit.core.letters import AT, a_letter, an_attempt, headers

OLD, NEW = b"1" * 32, b"2" * 32
CIPHER = AesGcm({"new": NEW, "old": OLD})


def a_secret_letter() -> DeadLetter:
    return a_letter(
        b'{"card": "canary"}',
        key=b"canary",
        headers=(("x-any", b"canary"),),
        content_type="text/canary",
        error_message="canary",
        stack="canary",
        user_id="canary",
        task_type="canary",
        tenant_id="t-1",
        trace_id="tr-1",
        attempts=(an_attempt(error_message="canary"), an_attempt(error_message="killed by signal 9", crash=True)),
        context={"run_id": "r-1"},
    )


def test_a_digest_has_nothing_of_its_message_but_its_hash_and_what_it_was_asked_to_tell() -> None:
    letter = a_secret_letter()
    kept = digested(letter, safe="refused by the schema")

    assert b"canary" not in to_json(kept) + entry_body(kept)
    assert (kept.payload, kept.key, kept.headers, kept.stack) == (None, None, (), None)
    assert kept.payload_sha256 == letter.payload_sha256
    assert (kept.tenant_id, kept.trace_id, kept.context) == ("t-1", "tr-1", {"run_id": "r-1"})
    assert kept.error_message == "refused by the schema"
    assert [attempt.error_message for attempt in kept.attempts] == ["", "killed by signal 9"]


def test_a_digest_tells_of_a_user_only_if_it_was_asked_to() -> None:
    letter = replace(a_secret_letter(), user_id="u-1", context={"user_id": "u-1"})

    assert digested(letter).user_id == "u-1"


def test_the_text_of_an_error_is_not_kept_with_a_digest() -> None:
    assert digested(a_secret_letter()).error_message.startswith("not kept: ")


def test_the_entry_of_a_digest_is_a_document_for_others_and_a_letter_for_us() -> None:
    kept = digested(a_secret_letter())
    body = entry_body(kept)
    document = json.loads(body)

    assert document["original_payload_hash"] == kept.payload_sha256
    assert document["context"] == {
        "tenant_id": "t-1",
        "trace_id": "tr-1",
        "msg_id": kept.original_message_id,
        "run_id": "r-1",
    }
    assert read_letter(body, to_fields(kept), queue=kept.queue, entry_id="1", now=AT) == kept


def test_the_entry_of_a_letter_that_never_had_a_payload_has_no_body() -> None:
    assert entry_body(a_letter(None, payload_sha256="")) == b""
    assert entry_body(a_letter(b"")) == b""


def test_a_digest_is_asked_for_tenant_run_and_trace_unless_told_otherwise() -> None:
    message = Message("1", "orders", b'{"run_id": "r-1", "email": "ann@example.com", "who": "ann@example.com"}')

    assert digest_rule(None).read(message) == {"run_id": "r-1"}
    assert digest_rule(ContextRule.of(["email", "who"])).read(message) == {"email": "***", "who": "***"}
    assert digest_rule(ContextRule.of(lambda _: {"a": 1})).read(message) == {"a": 1}


@given(st.binary(), headers, st.none() | st.binary())
def test_a_sealed_letter_is_opened_byte_for_byte(payload: bytes, given_headers: Headers, key: bytes | None) -> None:
    letter = a_letter(payload, headers=given_headers, key=key)
    sealed = seal(letter, CIPHER)

    assert sealed_by(sealed) == "new"
    assert (sealed.key, named_key(sealed.headers), sealed.payload_sha256) == (None, "new", payload_hash(payload))
    assert open_letter(sealed, CIPHER) == replace(letter, content_type="")


@pytest.mark.parametrize("way", ["json", "fields"])
def test_a_sealed_letter_travels_as_any_other(way: str) -> None:
    letter = a_letter(b"canary", headers=(("a", b"canary"),), key=b"canary")
    sealed = seal(letter, CIPHER)
    there = from_json(to_json(sealed)) if way == "json" else from_fields(to_fields(sealed), sealed.payload)

    assert there == sealed
    assert b"canary" not in to_json(sealed)
    assert "canary" not in searchable_text(sealed)
    assert open_letter(there, CIPHER).payload == b"canary"


def test_nothing_is_sealed_the_same_way_twice() -> None:
    letter = a_letter(b"canary")

    assert seal(letter, CIPHER).payload != seal(letter, CIPHER).payload


def test_a_key_that_was_replaced_still_opens_what_it_sealed() -> None:
    sealed = seal(a_letter(b"canary"), AesGcm({"old": OLD}))

    assert sealed_by(sealed) == "old"
    assert open_letter(sealed, CIPHER).payload == b"canary"


@pytest.mark.parametrize(
    ("changes", "cipher", "said"),
    [
        ({}, None, "no key is at hand"),
        ({}, AesGcm({"other": NEW}), "'new', which is not at hand"),
        ({}, AesGcm({"new": OLD}), "cannot be opened"),
        ({"letter_id": "another"}, CIPHER, "cannot be opened"),
        ({"payload": b"x" * 40}, CIPHER, "cannot be opened"),
        ({"payload": b"x"}, CIPHER, "cannot be opened"),
        ({"payload_sha256": "0" * 64}, CIPHER, "its hash is another"),
    ],
)
def test_what_no_key_opens_is_told(changes: dict[str, object], cipher: AesGcm | None, said: str) -> None:
    sealed = replace(seal(a_letter(b"canary"), CIPHER), **changes)  # type: ignore[arg-type]
    with pytest.raises(DeadLetterError, match=said):
        open_letter(sealed, cipher)


def test_a_message_that_only_looks_sealed_is_not() -> None:
    letter = a_letter(b"plain", headers=((SEALED, b"new"),))

    assert sealed_by(from_fields(to_fields(letter), b"plain")) is None
    assert open_letter(letter, CIPHER) is letter


def test_a_letter_without_a_payload_stays_as_it_is() -> None:
    letter = a_letter(None)

    assert seal(letter, CIPHER) is letter
    assert open_letter(letter, None) is letter


def test_what_cannot_be_sent_back_says_where_its_message_was() -> None:
    letter = a_letter(None, letter_id="l-1", broker="main", queue="orders", original_message_id="7-0")
    hashed = letter.payload_sha256

    assert str(no_payload(letter)).endswith(f"its message was 7-0 in the queue orders of broker main, sha256 {hashed}")


def test_there_are_three_modes() -> None:
    assert [*PayloadMode] == ["full", "digest", "encrypted"]
    with pytest.raises(ConfigError, match="payload: expected one of full, digest, encrypted, got 'hash'"):
        PayloadMode.of("hash")
