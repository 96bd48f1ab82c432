from typing import Any

from redrive.core.life import LetterState
from redrive.triage import letters
from tests.unit.console.seen import Seen, read
from tests.unit.console.stage import ConsoleStage
from tests.unit.triage.bench import begin

NEW = "/discard?queue=orders"


def order(seen: Seen, **changes: Any) -> dict[str, Any]:
    return {**seen.form("/discard").fields, **changes}


async def test_a_preview_says_what_would_be_discarded_and_does_nothing() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(30, error_type="KeyError")
        await stage.collect(5, prefix="other", queue="mails", error_type="TimeoutError")

        seen = await stage.see("/discard?all=true")

        assert seen.headings[0] == "Discard 35 letters"
        assert seen.form("/discard").buttons == ("Discard 35 letters",)
        for row in (["orders", "30"], ["mails", "5"], ["KeyError", "30"], ["open", "35"]):
            assert row in seen.rows
        assert await stage.states() == {"open": 35}
        assert await stage.verbs() == []


async def test_exactly_what_was_previewed_is_discarded_and_the_audit_says_why() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        seen = await stage.see(NEW)
        await stage.collect(2, prefix="later")

        said = await stage.follow(await stage.post("/discard", order(seen, why="test orders")))

        assert "Discarded 3 letters." in said.text
        assert await stage.states() == {"discarded": 3, "open": 2}
        (record,) = [one for one in (await stage.store.records()).rows if not one.letter_id]
        assert (record.verb, record.who, record.count) == ("letters.discard", "local", 3)
        assert record.detail["why"] == "test orders"


async def test_what_has_changed_since_is_not_discarded_but_shown_again() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        seen = await stage.see(NEW)
        await letters.discard(stage.desk, await stage.selection(letter_ids=["letter-1"]))

        answer = await stage.post("/discard", order(seen, why="test orders"))

        again = read(answer.text)
        assert (answer.status_code, again.headings[0]) == (409, "Discard 2 letters")
        assert ("look again" in again.text, again.form("/discard").fields["why"]) == (True, "test orders")
        assert await stage.states() == {"discarded": 1, "open": 2}
        assert (await stage.post("/discard", order(again))).status_code == 303


async def test_a_preview_of_a_redrive_is_none_of_a_discard() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        seen = await stage.see("/redrives/new?queue=orders")
        token = next(one.attributes["value"] for one in seen.root.all("button") if "value" in one.attributes)

        answer = await stage.post("/discard", {"queue": "orders", "preview": token})

        assert answer.status_code == 409
        assert await stage.states() == {"open": 3}


async def test_without_a_preview_nothing_is_discarded() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)

        for form in ({"queue": "orders"}, {"queue": "orders", "preview": "odd"}, {"preview": "3.00"}, {"all": "true"}):
            assert (await stage.post("/discard", form)).status_code == 400
        assert (await stage.get("/discard")).status_code == 400
        assert await stage.states() == {"open": 3}


async def test_letters_that_cannot_be_discarded_are_left_out_and_named() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        redrive = await begin(stage)
        await stage.store.claim(redrive.redrive_id, step=0, limit=1)

        seen = await stage.see("/discard?letter_id=letter-0&letter_id=letter-1&letter_id=letter-2")

        assert seen.headings[0] == "Discard 2 letters"
        assert "1 left out: redriving." in seen.text
        ids = [one.attributes["value"] for one in seen.root.all("input") if one.attributes.get("name") == "letter_id"]
        said = await stage.follow(await stage.post("/discard", order(seen, letter_id=ids)))
        assert "Discarded 2 letters." in said.text
        assert await stage.states() == {"redriving": 1, "discarded": 2}


async def test_one_letter_leads_back_to_its_page() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        seen = await stage.see("/discard?letter_id=letter-0")

        answer = await stage.post("/discard", order(seen))

        assert answer.headers["location"] == "/letters/letter-0"
        assert (await stage.stored()).life.state is LetterState.DISCARDED


async def test_where_nothing_can_be_discarded_it_says_so() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        await letters.discard(stage.desk, await stage.selection())

        seen = await stage.see(NEW)

        assert (seen.headings[0], seen.offers("/discard")) == ("Nothing to discard", False)


async def test_a_reason_that_is_too_long_is_refused() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        seen = await stage.see(NEW)

        assert (await stage.post("/discard", order(seen, why="x" * 501))).status_code == 400
        assert await stage.states() == {"open": 1}


async def test_a_viewer_may_neither_preview_nor_discard() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.collect(1)
        await stage.as_("viewer")

        assert (await stage.get(NEW)).status_code == 403
        assert (await stage.post("/discard", {"queue": "orders"})).status_code == 403
