"""Bytes in, bytes back: whatever a letter holds."""

from typing import Any

import pytest

from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.testing.conformance.store.bench import AT, Bench, Suite, letter

PAYLOADS = [
    pytest.param(None, id="none kept"),
    pytest.param(b"", id="empty"),
    pytest.param(b"\xff\xfe\x80", id="not UTF-8"),
    pytest.param(b"a\x00b\x00", id="NUL"),
    pytest.param(bytes(range(256)) * 4096, id="1 MiB of every byte"),
]
HEADERS: Headers = (("colour", b"red"), ("colour", b"\xff\x00"), ("gr\u00fc\u00df", b""), ("\udc80", b"x"))
STRANGE = ["a\x00b", "\ud800", "\udc80 lone", "\ufdd0", "\U0001f600", "\\u0000", "'; --", "%_"]


class Contents(Suite):
    """Promise 6, in the store."""

    @pytest.mark.parametrize("payload", PAYLOADS)
    async def test_payload_key_and_headers_are_kept_to_the_byte(self, bench: Bench, payload: bytes | None) -> None:
        told = letter("a", payload=payload, headers=HEADERS, key=b"\x00\xff")
        await bench.store.collect([told])

        assert (await bench.store.get("a")).letter == told

    @pytest.mark.parametrize("text", STRANGE, ids=ascii)
    async def test_any_text_is_kept_and_found(self, bench: Bench, text: str) -> None:
        told = _everywhere(text)
        await bench.store.collect([told, letter("other")])

        assert (await bench.store.get(text)).letter == told
        for name in ("queue", "error_type", "error_code", "fingerprint", "user_id", "tenant_id", "broker"):
            asked: dict[str, Any] = {name: text}
            assert await bench.names(Query(**asked)) == [text]
        assert (await bench.store.stats(text)).by_error_type == {text: 1}
        assert (await bench.store.incident(text)).error_message == text

    async def test_instants_are_kept_to_the_microsecond(self, bench: Bench) -> None:
        at = AT.replace(microsecond=123457)
        told = letter("a", failed_at=at, first_failed_at=at, received_at=at, dlq_published_at=at, collected_at=at)
        await bench.store.collect([told])

        assert (await bench.store.get("a")).letter == told


def _everywhere(text: str) -> DeadLetter:
    names = ("broker", "queue", "group", "handler", "app_version", "node", "original_message_id", "content_type")
    errors = ("error_type", "error_message", "error_code", "severity", "stack", "fingerprint")
    owners = ("user_id", "tenant_id", "trace_id", "task_type", "kind")
    values: dict[str, Any] = dict.fromkeys((*names, *errors, *owners), text)
    return letter(text, reason=Reason.INVALID, context={text: [text]}, **values)
