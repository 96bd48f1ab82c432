from http import HTTPStatus
from typing import Any

import pytest

from redrive.core.access import Role
from redrive.core.query import Query
from redrive.triage import letters, masking, redrives
from redrive.triage.access import LOCAL
from tests.unit.console.stage import ConsoleStage
from tests.unit.triage.bench import begin


async def test_before_anything_was_done_the_page_says_what_will_be_recorded() -> None:
    async with ConsoleStage() as stage:
        seen = await stage.see("/audit")

    assert "Nothing was done yet" in seen.text
    assert "redrive audit verify" in seen.text


async def test_an_operation_is_one_row_with_who_what_how_many_which_and_when() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(7)
        await letters.discard(stage.desk, await stage.selection(query=Query(queue="orders")), why="a test order")
        stage.clock.advance("5m")
        seen = await stage.see("/audit")

    ((when, who, verb, count, which),) = seen.rows
    assert (when, who, verb, count) == ("5m ago", "sam", "letters.discard", "7")
    assert "queue=orders" in which
    assert "why a test order" in which
    assert "and 2 more here" in which
    assert seen.link("letter-0") == "/letters/letter-0"
    assert len(seen.keys()) == 1


async def test_the_latest_is_first() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        await letters.note(stage.desk, "letter-0", "look at this")
        await masking.reveal(stage.desk, LOCAL, "letter-0")
        seen = await stage.see("/audit")

    assert [cells[2] for cells in seen.rows] == ["letters.reveal", "letters.note"]
    assert "look at this" in seen.rows[1][4]


async def test_a_redrive_is_linked() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        redrive = await begin(stage)
        seen = await stage.see("/audit")

    assert seen.link(f"redrive {redrive.redrive_id}") == f"/redrives/{redrive.redrive_id}"


async def test_what_was_done_to_a_redrive_links_to_it() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        redrive = await begin(stage)
        await redrives.cancel(stage.desk, redrive.redrive_id, why="the wrong ones")
        seen = await stage.see("/audit")

    assert seen.rows[0][2] == "redrives.cancel"
    assert "redrive=" not in seen.rows[0][4]
    named = [one.text for one in seen.root.all("a") if one.attributes["href"] == f"/redrives/{redrive.redrive_id}"]
    assert named == [f"redrive {redrive.redrive_id}"] * 2


async def test_only_what_was_done_to_one_letter() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)
        await letters.note(stage.desk, "letter-0", "mine")
        await letters.note(stage.desk, "letter-1", "not mine")
        seen = await stage.see("/audit?letter_id=letter-0")
        nothing = await stage.see("/audit?letter_id=nosuch")

    assert [cells[2] for cells in seen.rows] == ["letters.note"]
    assert "not mine" not in seen.text
    assert seen.form("/audit").fields == {"letter_id": "letter-0"}
    assert seen.link("letter-0") == "/letters/letter-0"
    assert "Nothing was done to it" in nothing.text


async def test_older_records_are_behind_a_link_and_none_is_left_out_or_shown_twice() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        for number in range(450):
            await letters.note(stage.desk, "letter-0", f"note <{number}>")
        told: list[str] = []
        path: str | None = "/audit"
        while path:
            seen = await stage.see(path)
            told += [cells[4].partition("<")[2].partition(">")[0] for cells in seen.rows if "<" in cells[4]]
            path = next((href for text, href in seen.links if text == "Older"), None)

    assert list(dict.fromkeys(told)) == [str(number) for number in reversed(range(450))]


async def test_a_cursor_that_is_none_is_a_mistake_of_the_address() -> None:
    async with ConsoleStage() as stage:
        answer = await stage.get("/audit?after=nonsense")

    assert answer.status_code == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(("role", "is_shown"), [(Role.VIEWER, False), (Role.OPERATOR, True)])
async def test_what_somebody_searched_for_is_seen_only_by_who_may_reveal(role: Role, *, is_shown: bool) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, error_message="card 4111")
        await letters.discard(stage.desk, await stage.selection(query=Query(text="card 4111")))
        await stage.as_(role)
        seen = await stage.see("/audit")

    assert ("card 4111" in seen.text) is is_shown


async def test_a_secret_in_a_note_is_masked_for_who_may_not_reveal() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        await letters.note(stage.desk, "letter-0", "use password=hunter2hunter2")
        assert "hunter2" in (await stage.see("/audit")).text
        await stage.as_(Role.VIEWER)
        assert "hunter2" not in (await stage.see("/audit")).html


@pytest.mark.parametrize("hostile", ["<img src=x onerror=alert(1)>", "\x1b[31mred", "\u202egnp", "n" * 100_000])
async def test_what_people_wrote_is_text_and_does_not_swell_the_page(hostile: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        for _ in range(200):
            await letters.note(stage.desk, "letter-0", hostile)
        answer: Any = await stage.get("/audit")

    assert "<img src=x" not in answer.text
    assert "\x1b" not in answer.text
    assert "\u202e" not in answer.text
    assert len(answer.content) < 150_000


async def test_letters_with_ids_without_end_do_not_swell_the_page() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(20, prefix="x" * 20_000)
        await letters.discard(stage.desk, await stage.selection())
        answer = await stage.get("/audit")

    assert answer.status_code == HTTPStatus.OK
    assert len(answer.content) < 150_000
