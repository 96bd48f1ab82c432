"""What a visitor is told when something went wrong: what it was, and what to do next."""

import re
from http import HTTPStatus
from importlib import resources

import pytest

from redrive.core.errors import StoreUnavailable
from redrive.door.problems import NEXT, next_step
from redrive.stores.memory import MemoryStore
from tests.unit.console.seen import read
from tests.unit.console.stage import ConsoleStage


class Away(MemoryStore):
    """A store that cannot be reached."""

    async def get(self, letter_id: str) -> object:  # type: ignore[override]
        raise StoreUnavailable("the store does not answer")


def test_every_status_that_is_answered_has_a_next_step() -> None:
    texts = [
        file.read_text("utf-8")
        for room in ("door", "console", "console.pages")
        for file in resources.files(f"redrive.{room}").iterdir()
        if file.name.endswith(".py")
    ]
    answered = {HTTPStatus[name] for text in texts for name in re.findall(r"HTTPStatus\.([A-Z_]+)", text)}
    ours = {status for status in answered if status >= HTTPStatus.BAD_REQUEST}

    assert HTTPStatus.TOO_MANY_REQUESTS in ours
    assert ours | {HTTPStatus.METHOD_NOT_ALLOWED} == set(NEXT)
    assert all(NEXT.values())


def test_a_status_that_nobody_thought_of_has_one_too() -> None:
    assert next_step(HTTPStatus.IM_A_TEAPOT) == "Go back, and try again."


async def test_a_page_of_trouble_says_what_to_do_and_leads_on() -> None:
    async with ConsoleStage() as stage:
        answer = await stage.get("/letters/nosuch")
        seen = read(answer.text)

    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert NEXT[HTTPStatus.NOT_FOUND] in seen.text
    assert {href for _, href in seen.links} >= {"/", "/letters"}


@pytest.mark.parametrize("is_change", [True, False])
async def test_who_changes_something_and_has_no_answer_is_told_to_look_first(*, is_change: bool) -> None:
    async with ConsoleStage(store=Away) as stage:
        answer = await (stage.post("/letters/letter-0/reveal") if is_change else stage.get("/letters/letter-0"))
        seen = read(answer.text)

    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert ("before you try again" in seen.text) is is_change
    assert ("Try again in a few seconds" in seen.text) is not is_change
