"""Dead letters as the messages of a DLQ: list and count."""

import asyncio
import threading
from base64 import b64decode
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from redrive.core.access import Role
from redrive.core.attempt import Attempt
from redrive.core.query import Query
from redrive.core.stored import LetterRow, Page, StoredLetter
from redrive.stores.memory import MemoryStore
from redrive.triage import editor, letters, masking
from tests.unit.api.stage import Stage


class Watched(MemoryStore):
    """Remembers how many letters it gave whole at once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.given = list[int]()

    async def read(self, query: Query, *, limit: int, after: str | None = None, most: int) -> Page[StoredLetter]:
        page = await super().read(query, limit=limit, after=after, most=most)
        self.given.append(len(page.rows))
        return page


SEED = {
    *("message_id", "original_message_id", "payload", "error_type", "error_message", "retry_count", "failed_at"),
    "user_id",
}


async def test_messages_have_the_names_of_the_seed_and_ours_beside_them() -> None:
    async with Stage() as stage:
        await stage.collect(1, user_id="user-1", error_message="no such customer", retry_count=4, dlq_entry_id="7-0")

        answer = await stage.ask("/dlq/messages?queue=orders")
        (found,) = answer.json()

        assert answer.status_code == 200
        assert {name: found[name] for name in SEED} == {
            "message_id": "letter-0",
            "original_message_id": "message-0",
            "payload": '{"order": 0}',
            "error_type": "ValueError",
            "error_message": "no such customer",
            "retry_count": 4,
            "failed_at": stage.clock.now().isoformat().replace("+00:00", "Z"),
            "user_id": "user-1",
        }
        assert (found["dlq_entry_id"], found["state"], found["queue"], found["generation"]) == (
            "7-0",
            "open",
            "orders",
            0,
        )
        assert (found["payload_encoding"], found["payload_masked"]) == (None, False)


async def test_messages_are_a_bare_array_newest_first_in_pages_of_fifty() -> None:
    async with Stage() as stage:
        await stage.collect(120)

        first = await stage.ask("/dlq/messages?error_type=ValueError")
        second = await stage.next_of(first)
        third = await stage.next_of(second)

        ids = [[one["message_id"] for one in page.json()] for page in (first, second, third)]
        assert [len(page) for page in ids] == [50, 50, 20]
        assert [one for page in ids for one in page] == [f"letter-{number}" for number in reversed(range(120))]
        assert "error_type=ValueError" in first.headers["link"]
        assert first.headers["link"].endswith('; rel="next"')
        assert "link" not in third.headers


async def test_filters_are_applied_before_the_page_is_cut() -> None:
    async with Stage() as stage:
        await stage.collect(1, prefix="rare", error_type="KeyError", user_id="ann")
        await stage.collect(300)

        found = (await stage.ask("/dlq/messages?limit=1&error_type=KeyError")).json()

        assert [one["message_id"] for one in found] == ["rare-0"]
        assert len((await stage.ask("/dlq/messages?user_id=ann")).json()) == 1


FOUND = {
    "reason=rejected": 2,
    "reason=expired": 0,
    "error_code=no_customer": 1,
    "tenant_id=acme": 1,
    "kind=llm": 1,
    "fingerprint=feed": 1,
    "q=ORDER%22:%200": 2,
    "from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z": 2,
    "to=2020-01-01T00:00:00Z": 0,
    "state=open": 2,
    "state=open&state=resolved": 2,
    "state=resolved": 0,
    "queue=nowhere": 0,
}


async def test_messages_are_found_by_every_filter() -> None:
    async with Stage() as stage:
        await stage.collect(1, error_code="no_customer", tenant_id="acme")
        await stage.collect(1, prefix="other", kind="llm", fingerprint="feed")

        assert {asked: len((await stage.ask(f"/dlq/messages?{asked}")).json()) for asked in FOUND} == FOUND


async def test_without_a_state_list_and_stats_cover_open_and_parked() -> None:
    async with Stage() as stage:
        await stage.collect(3)
        await stage.collect(1, prefix="parked", generation=5)
        await stage.http.delete("/dlq/messages/letter-0")

        found = (await stage.ask("/dlq/messages")).json()
        counted = (await stage.ask("/dlq/stats")).json()
        discarded = (await stage.ask("/dlq/stats?state=discarded")).json()

        assert sorted(one["message_id"] for one in found) == ["letter-1", "letter-2", "parked-0"]
        assert counted["total_messages"] == 3
        assert counted["by_state"] == {"open": 2, "parked": 1}
        assert discarded["total_messages"] == 1


async def test_stats_are_exact_for_one_queue_and_for_all() -> None:
    async with Stage() as stage:
        first = stage.clock.now()
        await stage.collect(1000, error_type="KeyError")
        stage.clock.advance("1h")
        await stage.collect(500, prefix="late", error_type="OSError")
        await stage.collect(7, prefix="mail", queue="mails")

        orders = (await stage.ask("/dlq/stats?queue=orders")).json()
        everything = (await stage.ask("/dlq/stats")).json()
        nowhere = (await stage.ask("/dlq/stats?queue=nowhere")).json()

        assert orders["queue_name"] == "orders"
        assert orders["total_messages"] == 1500
        assert orders["by_error_type"] == {"KeyError": 1000, "OSError": 500}
        assert datetime.fromisoformat(orders["oldest_message_at"]) == first
        assert datetime.fromisoformat(orders["newest_message_at"]) == first + timedelta(hours=1)
        assert (everything["queue_name"], everything["total_messages"]) == (None, 1507)
        assert everything["by_queue"] == {"orders": 1500, "mails": 7}
        assert (nowhere["total_messages"], nowhere["oldest_message_at"]) == (0, None)


async def test_secrets_in_the_names_of_errors_are_masked_in_counts_too() -> None:
    async with Stage() as stage:
        await stage.collect(1, error_type="NoUser:ann@example.com")
        await stage.collect(2, prefix="other", error_type="NoUser:kim@example.com")

        assert (await stage.ask("/dlq/stats")).json()["by_error_type"] == {"NoUser:***": 3}


async def test_a_payload_that_is_no_text_is_hidden_and_base64_where_it_is_revealed() -> None:
    async with Stage() as stage:
        binary = b"\xff\x00\xfe"
        await stage.collect(1, prefix="binary", payload=binary)

        masked = (await stage.ask("/dlq/messages")).json()[0]
        revealed = (await stage.ask("/dlq/messages?reveal=true")).json()[0]

        assert masked["payload_masked"]
        assert masked["payload"].startswith("(hidden: 3 bytes")
        assert masked["payload_encoding"] is None
        assert (b64decode(revealed["payload"]), revealed["payload_encoding"]) == (binary, "base64")
        assert not revealed["payload_masked"]


async def test_a_digest_has_no_payload() -> None:
    async with Stage() as stage:
        await stage.collect(1, payload=None)

        (found,) = (await stage.ask("/dlq/messages")).json()

        assert (found["payload"], found["payload_encoding"], found["payload_masked"]) == (None, None, False)


async def test_secrets_in_lists_are_masked_unless_an_operator_asks_which_is_on_record() -> None:
    async with Stage(needs_token=True) as stage:
        await stage.collect(2, payload=b'{"password": "hunter2"}')
        viewer, operator = await stage.token(Role.VIEWER), await stage.token(Role.OPERATOR)

        masked = await stage.ask("/dlq/messages", headers=viewer)
        refused = await stage.ask("/dlq/messages?reveal=true", headers=viewer)
        revealed = await stage.ask("/dlq/messages?reveal=true", headers=operator)
        touched = [one.letter_id for one in (await stage.store.records()).rows if one.verb == "letters.reveal"]

        assert "hunter2" not in masked.text
        assert [one["payload_masked"] for one in masked.json()] == [True, True]
        assert (refused.status_code, "hunter2" in refused.text) == (403, False)
        assert revealed.text.count("hunter2") == 2
        assert {"letter-0", "letter-1"} <= set(touched)


async def test_a_page_ends_early_where_payloads_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "ENOUGH", 1000)
    async with Stage() as stage:
        await stage.collect(10, payload=b"x" * 600)

        first = await stage.ask("/dlq/messages")
        rest = [one async for one in _rest(stage, first)]

        assert len(first.json()) == 2
        assert len(rest) == 8


LARGE = b"x" * (letters.ENOUGH + 1)


@pytest.mark.parametrize("reveal", ["false", "true"])
async def test_large_letters_are_read_one_at_a_time_and_no_more_than_a_page_holds(reveal: str) -> None:
    async with Stage(store=Watched) as stage:
        await stage.collect(20, payload=LARGE)

        page = await stage.ask(f"/dlq/messages?reveal={reveal}")

        assert stage.store.given == [1]  # type: ignore[attr-defined]
        assert (len(page.json()), "link" in page.headers) == (1, True)


async def test_large_letters_behind_small_ones_are_never_read_in_heaps() -> None:
    async with Stage(store=Watched) as stage:
        await stage.collect(40, payload=LARGE)
        await stage.collect(30, prefix="small")

        found = (await stage.ask("/dlq/messages?limit=100")).json()

        assert stage.store.given == [len(found)] == [31]  # type: ignore[attr-defined]


async def test_edits_count_as_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "ENOUGH", 1000)
    async with Stage(store=Watched) as stage:
        for letter in await stage.collect(3):
            await editor.edit(stage.desk, letter.letter_id, body=b"x" * 1000)

        assert len((await stage.ask("/dlq/messages")).json()) == 1
        assert stage.store.given == [1]  # type: ignore[attr-defined]


async def test_others_are_answered_while_the_payloads_of_a_list_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Stage() as stage:
        await stage.collect(1)
        loop, turned = asyncio.get_running_loop(), threading.Event()

        def slow(stored: StoredLetter) -> StoredLetter:
            loop.call_soon_threadsafe(turned.set)
            assert turned.wait(10), "the loop stood still"
            return stored

        monkeypatch.setattr(masking, "masked", slow)

        assert (await stage.ask("/dlq/messages")).status_code == 200


async def test_pages_are_filled_over_looks_that_find_nothing() -> None:
    class Slow(MemoryStore):
        """Looks at one letter at a time, as a store does whose time is up."""

        async def find(
            self, query: Query, *, limit: int = 50, after: str | None = None, patience: timedelta | None = None
        ) -> Page[LetterRow]:
            page = await super().find(Query(), limit=1, after=after)
            rows = [row for row in page.rows if row.queue == query.queue]
            return Page(rows, page.after)

    async with Stage(store=Slow) as stage:
        await stage.collect(1, prefix="wanted", queue="mails")
        await stage.collect(15)

        messages = (await stage.ask("/dlq/messages?queue=mails")).json()
        lines = (await stage.ask("/letters?queue=mails")).json()

        assert [one["message_id"] for one in messages] == ["wanted-0"]
        assert [one["letter_id"] for one in lines] == ["wanted-0"]


async def test_an_error_of_any_text_can_be_listed() -> None:
    async with Stage() as stage:
        ugly = "\ud800 \x00 \x1b[31m <img src=x onerror=alert(1)>"
        attempt = Attempt(1, datetime.now(UTC), datetime.now(UTC), ugly, ugly, generation=0)
        await stage.collect(1, error_message=ugly, error_type=ugly, attempts=(attempt,), headers=((ugly, b"\xff"),))

        for path in ("/dlq/messages", "/dlq/messages/letter-0", "/letters", "/letters/letter-0", "/dlq/stats"):
            answer = await stage.ask(path)
            assert answer.status_code == 200, path
            assert answer.headers["content-type"] == "application/json"
            assert "<img src=x onerror" in answer.text


async def _rest(stage: Stage, page: httpx2.Response) -> AsyncIterator[Any]:
    while "link" in page.headers:
        page = await stage.next_of(page)
        for one in page.json():
            yield one
