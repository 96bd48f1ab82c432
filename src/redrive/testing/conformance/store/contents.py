"""Bytes in, bytes back: whatever a letter holds."""

from datetime import timedelta
from typing import Any

import pytest

from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.core.stored import Dimension, Edit
from redrive.testing.conformance.store.bench import AT, Bench, Suite, an_outcome, letter

PAYLOADS = [
    pytest.param(None, id="none kept"),
    pytest.param(b"", id="empty"),
    pytest.param(b"\xff\xfe\x80", id="not UTF-8"),
    pytest.param(b"a\x00b\x00", id="NUL"),
    pytest.param(bytes(range(256)) * 4096, id="1 MiB of every byte"),
]
HEADERS: Headers = (("colour", b"red"), ("colour", b"\xff\x00"), ("gr\u00fc\u00df", b""), ("\udc80", b"x"))
DIMENSIONS: tuple[Dimension, ...] = ("queue", "error_type", "error_code")
HOUR = timedelta(hours=1)
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
        for name in (
            "queue",
            "error_type",
            "error_code",
            "fingerprint",
            "user_id",
            "tenant_id",
            "broker",
            "dlq_entry_id",
        ):
            asked: dict[str, Any] = {name: text}
            assert await bench.names(Query(**asked)) == [text]
        assert (await bench.store.stats(text)).by_error_type == {text: 1}
        assert (await bench.store.incident(text)).error_message == text
        for by in DIMENSIONS:
            assert await bench.store.trends(since=AT - HOUR, queue=text, by=by) == [(AT.replace(minute=0), {text: 1})]

    async def test_many_letters_are_given_whole_in_the_order_asked(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c", payload=b"\xff")
        await bench.dead("b", generation=1)
        edits = [Edit(body=body, headers=HEADERS, by="ann", edited_at=AT) for body in (b"one", b"two")]
        for edit in edits:
            await bench.edit("c", edit)
        await bench.plan("b", "c", redrive_id="r1")
        await bench.plan("c", redrive_id="r2")
        await bench.store.collect([], [an_outcome("b", 1, succeeded=False), an_outcome("b", 1)])
        found = await bench.store.get_many(["c", "gone", "b", "c"])

        assert [*found] == [await bench.store.get(name) for name in "cb"]
        assert [one.edits for one in found] == [tuple(edits), ()]
        assert [one.redrive_ids for one in found] == [("r1", "r2"), ("r1",)]
        assert [one.succeeded for one in found[1].outcomes] == [False, True]
        assert [*await bench.store.get_many([])] == []

    async def test_a_page_of_whole_letters_ends_where_they_have_enough_bytes(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c", "d", payload=b"x" * 600)
        first = await bench.store.read(Query(), limit=10, most=1000)
        second = await bench.store.read(Query(), limit=1, after=first.after, most=1000)
        third = await bench.store.read(Query(), limit=10, after=second.after, most=1000)

        assert [*first.rows, *second.rows, *third.rows] == [await bench.store.get(name) for name in "dcba"]
        assert [len(page.rows) for page in (first, second, third)] == [2, 1, 1]
        assert third.after is None

    async def test_a_large_letter_is_a_page_of_its_own_and_its_edits_count(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c", payload=b"x")
        await bench.edit("c", Edit(body=b"x" * 1000, headers=(), by="ann", edited_at=AT))
        page = await bench.store.read(Query(), limit=10, most=1000)
        rest = await bench.store.read(Query(), limit=10, after=page.after, most=1000)

        assert [one.letter.letter_id for one in page.rows] == ["c"]
        assert [one.letter.letter_id for one in rest.rows] == ["b", "a"]
        assert (await bench.store.read(Query(queue="none"), limit=10, most=1000)).rows == []

    async def test_instants_are_kept_to_the_microsecond(self, bench: Bench) -> None:
        at = AT.replace(microsecond=123457)
        told = letter("a", failed_at=at, first_failed_at=at, received_at=at, dlq_published_at=at, collected_at=at)
        await bench.store.collect([told])

        assert (await bench.store.get("a")).letter == told


def _everywhere(text: str) -> DeadLetter:
    names = (
        "broker",
        "queue",
        "group",
        "handler",
        "app_version",
        "node",
        "original_message_id",
        "content_type",
        "dlq_entry_id",
    )
    errors = ("error_type", "error_message", "error_code", "severity", "stack", "fingerprint")
    owners = ("user_id", "tenant_id", "trace_id", "task_type", "kind")
    values: dict[str, Any] = dict.fromkeys((*names, *errors, *owners), text)
    return letter(text, reason=Reason.INVALID, context={text: [text]}, **values)
