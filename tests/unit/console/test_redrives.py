from typing import Any

import pytest

from redrive.core.redrive import RedriveState
from redrive.triage import letters, redrives
from tests.unit.console.seen import Seen, read
from tests.unit.console.stage import ConsoleStage
from tests.unit.triage.bench import begin

NEW = "/redrives/new?queue=orders"


def order(seen: Seen, **changes: str) -> dict[str, str]:
    """What the big button sends."""
    form = seen.form("/redrives/new")
    token = next(one for one in seen.root.all("button") if one.attributes.get("name") == "preview")
    assert (token.attributes["formmethod"], token.attributes["formaction"]) == ("post", "/redrives")
    return {**form.fields, "preview": token.attributes["value"], **changes}


def warnings(seen: Seen) -> list[str]:
    return [one.text for one in seen.root.all("p") if one.attributes.get("class") == "warning"]


async def test_a_preview_says_what_would_be_sent_and_does_nothing() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(30, error_type="KeyError")
        await stage.collect(10, prefix="other", queue="mails", error_type="TimeoutError")

        seen = await stage.see("/redrives/new?all=true")

        assert seen.headings[0] == "Redrive 40 letters"
        assert "2, then 10, then 28" in seen.text  # of each queue and type of error
        assert [row for row in seen.rows if row[0].startswith(("orders", "mails"))] == [
            ["orders, only to shop", "30"],
            ["mails, only to shop", "10"],
            ["orders", "30"],
            ["mails", "10"],
        ]
        assert ["KeyError", "30"] in seen.rows
        assert ["open", "40"] in seen.rows
        assert "Redrive 40 letters" in seen.form("/redrives/new").buttons
        assert (await stage.store.redrives()).rows == []


async def test_exactly_what_was_previewed_is_sent() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(30)
        seen = await stage.see(f"{NEW}&rate=200&report_within=10m")
        await stage.collect(7, prefix="later")

        answer = await stage.post("/redrives", order(seen))

        said = await stage.follow(answer)
        (made,) = (await stage.store.redrives()).rows
        assert answer.headers["location"] == f"/redrives/{made.redrive_id}"
        assert "Begun: 30 letters in 3 steps." in said.text
        assert (made.total, made.steps, made.rate, made.by) == (30, (1, 5), 200, "local")
        assert made.report_within.total_seconds() == 600
        assert await stage.verbs() == ["letters.redrive"]


async def test_a_double_click_begins_one_redrive() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        seen = await stage.see(NEW)

        first, second = [await stage.post("/redrives", order(seen)) for _ in range(2)]

        assert first.headers["location"] == second.headers["location"]
        assert len((await stage.store.redrives()).rows) == 1


async def test_what_has_changed_since_is_not_sent_but_shown_again() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        seen = await stage.see(NEW)
        await letters.discard(stage.desk, await stage.selection(letter_ids=["letter-1"]))

        answer = await stage.post("/redrives", order(seen))

        again = read(answer.text)
        assert (answer.status_code, again.headings[0]) == (409, "Redrive 2 letters")
        assert "look again" in again.text
        assert (await stage.store.redrives()).rows == []
        assert (await stage.post("/redrives", order(again))).status_code == 303


async def test_terms_that_were_typed_and_not_previewed_are_shown_first() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        seen = await stage.see(NEW)

        answer = await stage.post("/redrives", order(seen, rate="5"))

        again = read(answer.text)
        assert (answer.status_code, again.form("/redrives/new").fields["rate"]) == (409, "5")
        assert (await stage.store.redrives()).rows == []


@pytest.mark.parametrize("token", ["", "nonsense", "3.0000", f"{'9' * 30}.0"])
async def test_without_the_token_of_a_preview_nothing_is_sent(token: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        seen = await stage.see(NEW)

        answer = await stage.post("/redrives", order(seen, preview=token))

        assert answer.status_code in (400, 409)
        assert (await stage.store.redrives()).rows == []


async def test_every_mistake_is_told_at_its_field_and_what_was_typed_stays() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        typed = {"canary": "1,x", "rate": "-3", "report_within": "soon", "confirm": "maybe"}
        address = "&".join(f"{name}={value}" for name, value in typed.items())

        for answer in (
            await stage.get(f"{NEW}&{address}"),
            await stage.post("/redrives", {"queue": "orders", **typed}),
        ):
            seen = read(answer.text)
            assert answer.status_code == 400
            told = {
                one.attributes["id"]: one.text
                for one in seen.root.all("p")
                if "mistake" in one.attributes.get("id", "")
            }
            assert {*told} == {f"{name}-mistake" for name in ("canary", "rate", "report_within", "confirm")}
            fields = seen.form("/redrives/new").fields
            assert (fields["canary"], fields["rate"]) == ("1,x", "-3")
            assert (fields["report_within"], fields["queue"]) == ("soon", "orders")
            assert not any(button.startswith("Redrive") for button in seen.form("/redrives/new").buttons)
            rate = next(one for one in seen.root.all("input") if one.attributes.get("name") == "rate")
            assert (rate.attributes["aria-invalid"], rate.attributes["aria-describedby"]) == ("true", "rate-mistake")


@pytest.mark.parametrize(
    ("terms", "steps"),
    [
        ("", "1, then 5, then 24"),
        ("&canary=1, 5, 25", "1, then 5, then 24"),
        ("&canary=", "30"),
        ("&canary=all", "30"),
        ("&canary=2,3", "2, then 3, then 25"),
        ("&canary=10", "10, then 20"),
    ],
)
async def test_the_steps_are_a_preset_all_at_once_or_ones_own(terms: str, steps: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(30)

        seen = await stage.see(f"{NEW}{terms}")
        again = await stage.see(f"/redrives/new?{_address(seen.form('/redrives/new').fields)}")

        for one in (seen, again):
            verdict = next(p.text for p in one.root.all("p") if p.attributes.get("class") == "verdict")
            assert verdict == steps


async def test_a_preset_is_one_click_away_and_keeps_the_other_terms() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(30)

        seen = await stage.see((await stage.see(f"{NEW}&rate=7&again=true")).link("all at once"))

        fields = seen.form("/redrives/new").fields
        assert seen.headings[0] == "Redrive 30 letters"
        assert "All at once: nothing is tried first." in seen.text
        assert (fields["rate"], fields["again"], fields["queue"]) == ("7", "true", "orders")


def _address(fields: dict[str, str]) -> str:
    return "&".join(f"{name}={value}" for name, value in fields.items())


async def test_where_letters_go_can_be_chosen_and_what_that_means_is_said() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)

        seen = await stage.see(f"{NEW}&place=queue&target_queue=orders-again&confirm=quiet")

        assert ["orders-again, every group of it", "3"] in seen.rows
        assert any("itself" in one for one in warnings(seen))
        made = await stage.follow(await stage.post("/redrives", order(seen)))
        assert "orders-again" in made.text
        (redrive,) = (await stage.store.redrives()).rows
        assert (redrive.to, redrive.target_queue, redrive.confirm) == ("queue", "orders-again", "quiet")


async def test_an_instant_of_the_filter_is_not_taken_for_the_place() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)

        seen = await stage.see(f"{NEW}&to=2031-01-01T00:00:00Z")

        assert seen.form("/redrives/new").fields["to"] == "2031-01-01T00:00:00Z"
        assert (await stage.post("/redrives", order(seen))).status_code == 303


async def test_letters_that_are_out_are_sent_again_only_if_that_is_asked_for() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)
        redrive = await begin(stage)
        await stage.store.claim(redrive.redrive_id, step=0, limit=1)

        usual = await stage.see(f"{NEW}&state=open&state=redriving")
        again = await stage.see(f"{NEW}&state=open&state=redriving&again=true")

        assert usual.headings[0] == "Redrive 1 letter"
        assert any("1 left out: redriving" in one for one in warnings(usual))
        assert (again.headings[0], warnings(again)) == ("Redrive 2 letters", [])
        assert again.form("/redrives/new").fields["again"] == "true"


async def test_some_letters_by_their_ids_are_previewed() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)

        seen = await stage.see("/redrives/new?letter_id=letter-0&letter_id=letter-2")
        hidden = [
            one.attributes["value"] for one in seen.root.all("input") if one.attributes.get("name") == "letter_id"
        ]
        fields: dict[str, Any] = {**order(seen), "letter_id": hidden}

        assert hidden == ["letter-0", "letter-2"]
        assert (await stage.post("/redrives", fields)).status_code == 303
        assert (await stage.store.redrives()).rows[0].total == 2


async def test_where_there_is_nothing_to_send_it_says_so_and_offers_no_button() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)
        await letters.discard(stage.desk, await stage.selection())

        seen = await stage.see("/redrives/new?letter_id=letter-0")

        assert seen.headings[0] == "Nothing to send back"
        assert warnings(seen) == ["1 left out: discarded"]
        assert seen.form("/redrives/new").buttons == ("Update the preview",)


async def test_no_letters_named_is_a_mistake_and_never_all_of_them() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)

        for address in (
            "/redrives/new",
            "/redrives/new?queue=",
            "/redrives/new?all=yes",
            "/redrives/new?all=true&queue=x",
        ):
            assert (await stage.get(address)).status_code == 400
        assert (await stage.post("/redrives", {"preview": "2.00"})).status_code == 400


async def test_a_viewer_may_neither_preview_nor_send() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.collect(2)
        await stage.as_("viewer")

        assert (await stage.get(NEW)).status_code == 403
        assert (await stage.post("/redrives", {"queue": "orders"})).status_code == 403
        assert "operator can send letters back" in (await stage.see("/redrives")).text


async def test_thousands_of_kinds_make_a_page_that_stays_small_and_text() -> None:
    async with ConsoleStage() as stage:
        for number in range(300):
            await stage.collect(
                1,
                prefix=f"l{number}",
                queue=f"{number}-{'q' * 200}",
                group="<b>",
                error_type=f"<img src=x onerror=alert({number})> \u202e",
                error_message="x",
            )

        seen = await stage.see("/redrives/new?all=true")

        assert "290 others" in seen.text
        assert (len(seen.root.all("img")), "\u202e" in seen.html) == (1, False)
        assert len(seen.html.encode()) < 150_000


async def test_redrives_are_listed_latest_first_with_how_far_they_are() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(30)
        first = await begin(stage, canary=[1, 5])
        await redrives.cancel(stage.desk, first.redrive_id, why="lunch")
        stage.clock.advance("1m")
        second = await begin(stage)

        seen = await stage.see("/redrives")

        assert seen.keys() == [second.redrive_id, first.redrive_id]
        running, cancelled = seen.rows
        assert running[0] == "all letters, state=open Sent nothing; running: 0 resolved, 0 unconfirmed, 30 to go"
        assert (running[1:5], running[6]) == (["running", "30", "30", "sam"], "")
        assert cancelled[0] == "all letters, state=open lunch"
        assert cancelled[1:4] == ["cancelled", "30", "1, then 5, then 24"]
        assert (await stage.live("/redrives")).keys() == seen.keys()


async def test_no_redrives_yet_says_the_next_step() -> None:
    async with ConsoleStage() as stage:
        seen = await stage.see("/redrives")

        assert "Nothing was sent back yet" in seen.headings
        assert (await stage.get("/redrives?after=nonsense")).status_code == 400


async def test_what_was_searched_for_is_hidden_from_who_may_not_reveal() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.collect(1, payload=b'{"card": "4111"}')
        await stage.as_("operator")
        seen = await stage.see("/redrives/new?q=4111")
        answer = await stage.post("/redrives", order(seen))
        assert "text=4111" in (await stage.see(answer.headers["location"])).text
        await stage.as_("viewer")

        for page in ("/redrives", answer.headers["location"]):
            assert "4111" not in (await stage.see(page)).html
        assert (await stage.store.redrives()).rows[0].state is RedriveState.RUNNING
