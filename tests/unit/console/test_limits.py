"""How often a visitor may ask: each who has signed in is counted apart."""

from http import HTTPStatus

import pytest

from redrive.config.settings import ServiceSettings
from redrive.core.access import Role
from redrive.door.cookie import SESSION
from redrive.door.limits import BURST
from redrive.triage import access
from tests.unit.console.stage import ConsoleStage

SLOW = ServiceSettings(rate_limit=5)
AT_ONCE = int(5 * BURST)


async def signed_in(stage: ConsoleStage, role: Role) -> str:
    return f"{SESSION}={(await access.issue(stage.desk, 'sam', role=role)).secret}"


async def look(stage: ConsoleStage, cookie: str) -> int:
    return (await stage.get("/letters", headers={"Cookie": cookie})).status_code


async def test_who_has_signed_in_is_counted_apart_from_others_at_the_same_address() -> None:
    async with ConsoleStage(needs_token=True, settings=SLOW) as stage:
        first, second = [await signed_in(stage, role) for role in (Role.VIEWER, Role.ADMIN)]
        assert [await look(stage, one) for one in (first, second)] == [HTTPStatus.OK, HTTPStatus.OK]

        spent = [await look(stage, f"other={number}; {first}") for number in range(AT_ONCE + 1)]

        assert spent == [*[HTTPStatus.OK] * AT_ONCE, HTTPStatus.TOO_MANY_REQUESTS]
        assert await look(stage, second) == HTTPStatus.OK


@pytest.mark.parametrize("needs_token", [True, False])
async def test_guesses_at_sessions_are_counted_together(*, needs_token: bool) -> None:
    async with ConsoleStage(needs_token=needs_token, settings=SLOW) as stage:
        answers = [await look(stage, f"{SESSION}=rdt_{number:043}") for number in range(AT_ONCE + 1)]

    assert HTTPStatus.TOO_MANY_REQUESTS not in answers[:-1]
    assert answers[-1] == HTTPStatus.TOO_MANY_REQUESTS
