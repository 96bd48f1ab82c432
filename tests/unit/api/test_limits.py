"""How large a body may be, how often somebody may ask, and how long an answer may take to begin."""

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import httpx2
import pytest

from redrive.config.settings import ServiceSettings
from redrive.core.access import Role
from redrive.door.deadline import Deadline
from redrive.door.limits import BURST, FullHouse, RateLimit
from redrive.door.problems import NEXT
from redrive.testing.clock import ManualClock
from tests.unit.api.stage import Stage

PROBLEM = "application/problem+json"
SMALL = ServiceSettings(body_limit=1000)
SLOW = ServiceSettings(rate_limit=5)
AT_ONCE = int(5 * BURST)


async def test_a_body_that_says_it_is_too_large_is_not_read() -> None:
    async with Stage(settings=SMALL) as stage:
        await stage.collect(1)

        fits = await stage.post("/letters/letter-0/note", {"text": "x" * 900})
        answer = await stage.post("/letters/letter-0/note", {"text": "x" * 1000})

        assert fits.status_code == 200
        assert (answer.status_code, answer.headers["content-type"]) == (413, PROBLEM)
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_body_in_chunks_is_cut_off_where_it_is_too_large() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b'{"text": "'
        while True:
            sent += 100
            yield b"x" * 100

    async with Stage(settings=SMALL) as stage:
        await stage.collect(1)
        headers = {"Content-Type": "application/json"}

        answer = await stage.http.post("/letters/letter-0/note", content=endless(), headers=headers)

        assert (answer.status_code, answer.headers["content-type"]) == (413, PROBLEM)
        assert sent <= 1100
        assert (await stage.get()).note == ""


@pytest.mark.parametrize("length", ["1e9", "-1", "", "9" * 5000, "²"])
async def test_a_length_that_is_no_number_is_never_our_mistake(length: str) -> None:
    async with Stage(settings=SMALL) as stage:
        headers = [(b"Content-Length", length.encode("latin-1")), (b"Content-Type", b"application/json")]

        answer = await stage.http.post("/letters/letter-0/note", content=b"{}", headers=headers)

        assert 400 <= answer.status_code < 500
        assert answer.headers["content-type"] == PROBLEM


async def test_who_asks_too_often_is_told_when_to_come_back() -> None:
    async with Stage(settings=SLOW) as stage:
        answers = [await stage.ask("/letters") for _ in range(AT_ONCE + 1)]
        stage.clock.advance("1s")
        later = await stage.ask("/letters")

        assert [one.status_code for one in answers] == [*[200] * AT_ONCE, 429]
        assert answers[-1].headers["content-type"] == PROBLEM
        assert answers[-1].headers["retry-after"] == "1"
        assert later.status_code == 200


async def test_a_browser_that_is_refused_at_the_door_gets_a_page() -> None:
    async with Stage(settings=SLOW) as stage:
        browser = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
        answers = [await stage.ask("/letters", headers=browser) for _ in range(AT_ONCE + 1)]

        assert answers[-1].status_code == 429
        assert answers[-1].headers["content-type"].startswith("text/html")
        assert answers[-1].headers["retry-after"] == "1"
        assert "<h1>Too Many Requests</h1>" in answers[-1].text
        assert NEXT[HTTPStatus.TOO_MANY_REQUESTS] in answers[-1].text
        assert '<a href="/">Overview</a>' in answers[-1].text


async def test_what_a_browser_is_refused_with_is_harmless() -> None:
    async with Stage() as stage:
        headers = {"Accept": "text/html", "Host": "<script>alert(1)</script>"}

        answer = await stage.ask("/letters", headers=headers)

        assert answer.status_code == 403
        assert "<script>" not in answer.text
        assert "at its own address" in answer.text


async def test_callers_are_counted_one_by_one_once_they_are_recognised() -> None:
    async with Stage(needs_token=True, settings=SLOW) as stage:
        first, second = await stage.token(Role.VIEWER), await stage.token(Role.ADMIN)
        assert [(await stage.ask("/letters", headers=one)).status_code for one in (first, second)] == [200, 200]

        spent = [(await stage.ask("/letters", headers=first)).status_code for _ in range(AT_ONCE + 1)]

        assert spent[-1] == 429
        assert (await stage.ask("/letters", headers=second)).status_code == 200


async def test_guesses_at_tokens_are_counted_together() -> None:
    async with Stage(needs_token=True, settings=SLOW) as stage:
        known = await stage.token(Role.VIEWER)
        await stage.ask("/letters", headers=known)
        guesses = [f"rdt_{number:043}" for number in range(AT_ONCE)]

        answers = [await stage.ask("/letters", headers={"Authorization": f"Bearer {one}"}) for one in guesses]

        assert [one.status_code for one in answers] == [*[401] * (AT_ONCE - 1), 429]
        assert (await stage.ask("/letters", headers=known)).status_code == 200


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("no address", "no address", True),
    ],
)
async def test_an_address_is_counted_with_those_of_the_same_customer(first: str, second: str, *, same: bool) -> None:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = RateLimit(answer, rate=0.1, clock=ManualClock())
    found = []
    for address in (first, second):
        transport = httpx2.ASGITransport(app=app, client=(address, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            found.append((await client.get("/")).status_code)

    assert found == [200, 429 if same else 200]


# ------------------------------------------------------------------------------------------------ deadline

SOON = {"reading": 0.5, "changing": 0.5}
NEVER = {"reading": 600.0, "changing": 600.0}


class Slow:
    """An app whose answer is ready when it is told so."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.done = asyncio.Event()
        self.heard = b""
        self.wrote_all = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            more = True
            while more:
                message = await receive()
                more = message.get("more_body", False)
                self.heard += message.get("body", b"")
            await self.may_answer.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"done"})
            self.wrote_all = True
        finally:
            self.done.set()


def asking(app: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://test")


async def test_an_answer_that_does_not_begin_in_time_is_a_503_and_what_was_asked_is_still_done() -> None:
    slow, told = Slow(), asyncio.Event()
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
        else:
            told.set()

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    handling = asyncio.create_task(Deadline(slow, **SOON)(scope, receive, send))
    await told.wait()
    assert (statuses, slow.done.is_set()) == ([503], False)

    slow.may_answer.set()
    await handling
    assert slow.done.is_set()
    assert (statuses, slow.wrote_all) == ([503], False)


@pytest.mark.parametrize(("method", "retry_after"), [("GET", "5"), ("POST", None), ("DELETE", None)])
async def test_only_who_asked_to_read_is_told_to_ask_again(method: str, retry_after: str | None) -> None:
    slow = Slow()

    async def goes_on_once_told(scope: Any, receive: Any, send: Any) -> None:
        async def tell(message: Any) -> None:
            await send(message)
            slow.may_answer.set()

        await Deadline(slow, **SOON)(scope, receive, tell)

    async with asking(goes_on_once_told) as client:
        answer = await client.request(method, "/")

    assert (answer.status_code, answer.headers["content-type"]) == (503, PROBLEM)
    assert "may still be done" in answer.json()["detail"]
    assert answer.headers.get("retry-after") == retry_after


async def test_a_body_that_takes_longer_than_the_answer_may_is_waited_for() -> None:
    slow = Slow()
    slow.may_answer.set()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(5):
            await asyncio.sleep(0.15)
            yield b"x"

    async with asking(Deadline(slow, **SOON)) as client:
        answer = await client.post("/", content=pieces())

    assert (answer.status_code, slow.heard) == (200, b"xxxxx")


async def test_an_answer_that_has_begun_may_go_on_for_as_long_as_it_likes() -> None:
    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(5):
            await asyncio.sleep(0.15)
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with asking(Deadline(stream, **SOON)) as client:
        assert (await client.get("/")).content == b"xxxxx"


async def test_an_import_that_has_begun_may_take_its_time() -> None:
    slow = Slow()
    asyncio.get_running_loop().call_later(1.0, slow.may_answer.set)
    async with asking(Deadline(slow, **SOON)) as client:
        assert (await client.post("/api/v1/import", content=b"{}")).status_code == 200


async def test_who_is_cancelled_leaves_nothing_at_work() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with asking(Deadline(hang, **NEVER)) as client:
        asked = asyncio.create_task(client.get("/"))
        await begun.wait()
        asked.cancel()
        async with asyncio.timeout(30):
            await ended.wait()

    assert asked.cancelled()


async def test_a_store_that_hangs_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redrive.door.middleware.READ_WITHIN", 0.05)
    async with Stage() as stage:
        hanging = asyncio.Event()

        async def hang(*_: Any, **__: Any) -> Any:
            await hanging.wait()

        monkeypatch.setattr(stage.store, "stats", hang)
        asyncio.get_running_loop().call_later(3.0, hanging.set)
        answer = await stage.ask("/dlq/stats")

        assert (answer.status_code, answer.headers["content-type"]) == (503, PROBLEM)
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_full_house_says_so_and_is_alive_all_the_same() -> None:
    slow = Slow()
    slow.may_answer.set()
    async with asking(FullHouse(slow, is_full=lambda: True)) as client:
        refused, alive = await client.get("/readyz"), await client.get("/healthz")

    assert (refused.status_code, refused.headers["content-type"]) == (503, PROBLEM)
    assert (refused.headers["connection"], refused.headers["retry-after"]) == ("close", "5")
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert alive.status_code == 200
