"""How large a body may be, and how often somebody may ask."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from redrive.api.limits import BURST, RateLimit
from redrive.config.settings import ServiceSettings
from redrive.core.access import Role
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
