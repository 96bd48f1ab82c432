import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2
import pytest

from redrive.api.routes import events
from redrive.core.access import Role
from redrive.core.errors import StoreUnavailable
from redrive.door.audience import Audience, audience_of
from redrive.triage import access
from tests.unit.api.stage import Stage


class Told(NamedTuple):
    event: str
    facts: Any
    id: str


def told(text: str) -> list[Told]:
    """The events of a stream; comments are left out."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append(Told(fields["event"], json.loads(fields["data"]), fields.get("id", "")))
    return found


async def at_rest(stage: Stage, asking: asyncio.Task[httpx2.Response]) -> None:
    """Return when the stream sleeps, or has ended."""
    while stage.clock.next_wake_at() is None and not asking.done():  # noqa: ASYNC110 - what a clock's sleepers do is no event
        await asyncio.sleep(0)


class Stream:
    """A stream that is being listened to. The transport gives it whole, at its end."""

    def __init__(self, stage: Stage, asking: asyncio.Task[httpx2.Response]) -> None:
        self._stage = stage
        self.asking = asking

    async def look(self) -> None:
        """Let the stream look for news once, and come to rest again."""
        for _ in range(2):
            await at_rest(self._stage, self.asking)
            self._stage.clock.advance(events.POLL)
            await at_rest(self._stage, self.asking)

    async def end(self) -> httpx2.Response:
        """End it as a server that is about to end does, and give what was heard."""
        audience_of(self._stage.app).close()
        return await self.asking


@asynccontextmanager
async def listening(stage: Stage, **options: Any) -> AsyncIterator[Stream]:
    asking = asyncio.create_task(stage.ask("/events", **options))
    try:
        await at_rest(stage, asking)
        yield Stream(stage, asking)
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def test_letters_are_told_as_they_arrive_and_without_payload() -> None:
    async with Stage() as stage, listening(stage) as stream:
        await stage.collect(2, context={"shop": "north"})
        await stream.look()
        answer = await stream.end()

        ready, first, second = told(answer.text)
        assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
        assert (ready.event, bool(ready.id)) == ("ready", True)
        assert [one.facts["letter_id"] for one in (first, second)] == ["letter-0", "letter-1"]
        assert (first.facts["state"], first.facts["queue"]) == ("open", "orders")
        assert not {"payload", "headers", "context", "attempts"} & first.facts.keys()
        assert (first.id, bool(second.id)) == ("", True)


async def test_what_was_there_before_is_not_told() -> None:
    async with Stage() as stage:
        await stage.collect(2)
        async with listening(stage) as stream:
            await stream.look()
            assert [one.event for one in told((await stream.end()).text)] == ["ready"]


async def test_who_comes_back_misses_nothing() -> None:
    async with Stage() as stage, listening(stage) as stream:
        ready = told((await stream.end()).text)[0]
    async with Stage() as stage:
        await stage.collect(3)
        async with listening(stage, headers={"Last-Event-ID": ready.id}) as stream:
            await stream.look()
            heard = told((await stream.end()).text)

    assert [one.facts["letter_id"] for one in heard if one.event == "letter"] == ["letter-0", "letter-1", "letter-2"]


async def test_who_breaks_off_before_the_first_letter_comes_back_to_where_they_were() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        first = (await stage.store.news(after=None)).after or ""
        await stage.collect(1, prefix="later")
        async with listening(stage, headers={"Last-Event-ID": first}) as stream:
            ready, letter = told((await stream.end()).text)

    assert (ready.id, letter.facts["letter_id"]) == (first, "later-0")
    assert letter.id not in ("", first)


async def test_more_than_a_page_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAGE", 2)
    async with Stage() as stage, listening(stage) as stream:
        await stage.collect(5)
        await stream.look()
        heard = told((await stream.end()).text)

    assert [one.event for one in heard] == ["ready", *["letter"] * 5]


@pytest.mark.parametrize(
    ("role", "shown"),
    [(Role.VIEWER, "user_id=***, state=open"), (Role.OPERATOR, "user_id=ann@example.com, state=open")],
)
async def test_what_a_redrive_is_about_is_masked_for_who_may_not_reveal(role: Role, shown: str) -> None:
    async with Stage() as stage:
        await stage.collect(1, user_id="ann@example.com")
        order = {"filter": {"user_id": "ann@example.com"}}
        preview = (await stage.post("/redrives", order)).json()["preview"]
        await stage.post("/redrives", {**order, "dry_run": False, "preview": preview})

        async with listening(stage, headers=await stage.token(role)) as stream:
            heard = told((await stream.end()).text)

        assert [one.facts["selection"] for one in heard if one.event == "redrive"] == [shown]


async def test_redrives_are_told_when_they_begin_and_change() -> None:
    async with Stage() as stage:
        await stage.collect(2)
        before = await stage.post("/redrives", {"letter_ids": ["letter-0"], "dry_run": False})
        async with listening(stage) as stream:
            await stage.post("/redrives", {"letter_ids": ["letter-1"], "dry_run": False})
            await stream.look()
            await stage.post(f"/redrives/{before.json()['redrive_id']}/cancel")
            await stream.look()
            heard = [one.facts["state"] for one in told((await stream.end()).text) if one.event == "redrive"]

    assert heard == ["running", "running", "cancelled"]


async def test_errors_are_masked() -> None:
    async with Stage() as stage, listening(stage) as stream:
        await stage.collect(1, error_message="password=hunter22 was refused")
        await stream.look()
        assert "hunter22" not in (await stream.end()).text


async def test_a_letter_that_utf_8_cannot_say_and_line_ends_do_not_break_the_stream() -> None:
    async with Stage() as stage, listening(stage) as stream:
        await stage.collect(1, error_message="a\n\nevent: forged\ndata: {}\r\n\ud800")
        await stream.look()
        heard = told((await stream.end()).text)

    assert [one.event for one in heard] == ["ready", "letter"]
    assert heard[1].facts["error_message"].endswith("\ud800")


async def test_a_store_that_is_away_for_a_while_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(**_: Any) -> Any:
        raise StoreUnavailable("away")

    async with Stage() as stage, listening(stage) as stream:
        with monkeypatch.context() as patch:
            patch.setattr(stage.store, "news", away)
            patch.setattr(stage.store, "redrives", away)
            await stage.collect(1)
            await stream.look()
        await stream.look()
        assert [one.event for one in told((await stream.end()).text)] == ["ready", "letter"]


async def test_a_stream_ends_after_a_while_so_that_its_caller_is_asked_again_who_it_is() -> None:
    async with Stage() as stage, listening(stage) as stream:
        stage.clock.advance(events.LONGEST)
        await stream.look()

        assert [one.event for one in told((await stream.asking).text)] == ["ready"]


async def test_so_many_may_listen_and_a_seat_is_free_again_after() -> None:
    async with Stage() as stage:
        stage.app.state.audience = Audience(seats=1)
        async with listening(stage) as stream:
            full = await stage.ask("/events")
            stage.clock.advance(events.LONGEST)
            await stream.look()
            await stream.asking
        async with listening(stage) as stream:
            again = await stream.end()

    assert (full.status_code, full.headers["retry-after"]) == (503, "30")
    assert again.status_code == 200


@pytest.mark.parametrize("last", ["gibberish", "-1", "9" * 1025, "99999999999999999999999999"])
async def test_a_cursor_that_is_none_is_refused_before_the_stream_begins(last: str) -> None:
    async with Stage() as stage:
        answer = await stage.ask("/events", headers={"Last-Event-ID": last})

        assert (answer.status_code in (400, 422), answer.headers["content-type"]) == (True, "application/problem+json")


async def test_a_refused_listener_takes_no_seat() -> None:
    async with Stage() as stage:
        stage.app.state.audience = Audience(seats=1)
        for _ in range(3):
            await stage.ask("/events", headers={"Last-Event-ID": "gibberish"})
        async with listening(stage) as stream:
            assert (await stream.end()).status_code == 200


async def test_listening_needs_a_token_where_reading_does() -> None:
    async with Stage(needs_token=True) as stage:
        viewer = await stage.token(Role.VIEWER)

        assert (await stage.ask("/events")).status_code == 401
        async with listening(stage, headers=viewer) as stream:
            assert (await stream.end()).status_code == 200


async def test_a_token_that_is_revoked_hears_no_more() -> None:
    async with Stage(needs_token=True) as stage:
        issued = await access.issue(stage.desk, "ann", role=Role.VIEWER)
        async with listening(stage, headers={"Authorization": f"Bearer {issued.secret}"}) as stream:
            await stage.collect(1)
            await stream.look()
            await access.revoke(stage.desk, issued.token.token_id)
            await stage.collect(1, prefix="later")
            await stream.look()

            assert stream.asking.done()
            assert [one.event for one in told((await stream.asking).text)] == ["ready", "letter"]


async def test_who_listens_with_a_token_goes_on_while_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("away")

    async with Stage(needs_token=True) as stage, listening(stage, headers=await stage.token(Role.VIEWER)) as stream:
        with monkeypatch.context() as patch:
            for name in ("news", "redrives", "token_by_hash"):
                patch.setattr(stage.store, name, away)
            await stage.collect(1)
            await stream.look()
        await stream.look()
        assert [one.event for one in told((await stream.end()).text)] == ["ready", "letter"]
