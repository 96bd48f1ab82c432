import asyncio
from typing import Any

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.console.pages import redrive as redrive_page
from redrive.console.selected import filter_address, letter_ids_in
from redrive.core.life import LetterState
from redrive.core.ports import Depth
from redrive.core.query import Query
from redrive.testing.clock import ManualClock
from redrive.triage import redrives
from redrive.triage.selection import in_words
from tests.unit.console.seen import Seen
from tests.unit.console.stage import ConsoleStage
from tests.unit.triage.bench import begin, fails_the_same_way, succeeds


def verdict(seen: Seen) -> str:
    return next(one.text for one in seen.root.all("p") if "verdict" in one.attributes.get("class", ""))


def numbers(seen: Seen) -> list[list[str]]:
    """Step, letters, sent, succeeded, failed again, failed otherwise, unconfirmed, skipped, still out, to go."""
    return [row for row in seen.rows if row[0].startswith(("Step", "All"))]


async def test_the_end_reads_as_people_would_tell_it() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(100)
        redrive = await begin(stage, canary=[1, 5, 25])
        await stage.while_consuming(stage.service.redriver.run(redrive.redrive_id), succeeds)

        seen = await stage.see(f"/redrives/{redrive.redrive_id}")

        assert verdict(seen) == (
            "Sent 1, it succeeded on version v2; sent 5, then 25, then 69: 100 resolved, 0 unconfirmed"
        )
        assert numbers(seen)[0] == ["Step 1", "1", "1", "1", "0", "0", "0", "0", "0", "0"]
        assert numbers(seen)[-1] == ["All steps", "100", "100", "100", "0", "0", "0", "0", "0", "0"]
        assert "Died on version v1, succeeded on version v2" in seen.text
        assert not [form for form in seen.forms if form.action.startswith("/redrives/")]


async def test_a_canary_that_fails_the_same_way_stops_it() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(40)
        redrive = await begin(stage, canary=[1, 5, 25])
        await stage.while_consuming(stage.service.redriver.run(redrive.redrive_id), fails_the_same_way)

        seen = await stage.see(f"/redrives/{redrive.redrive_id}")

        assert verdict(seen) == "stopped after 1: same failure, 39 untouched"
        assert numbers(seen)[0] == ["Step 1", "1", "1", "0", "1", "0", "0", "0", "0", "0"]
        assert numbers(seen)[-1][-1] == "39"
        assert "Untouched" in [one.text for one in seen.root.all("th")]
        assert "What was not sent is as it was. Mend what fails" in seen.text


async def test_an_end_with_failures_does_not_look_like_success() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        redrive = await begin(stage)
        await stage.while_consuming(stage.service.redriver.run(redrive.redrive_id), fails_the_same_way)

        seen = await stage.see(f"/redrives/{redrive.redrive_id}")

        (badge,) = [one for one in seen.root.all("span") if one.attributes.get("class") == "badge"]
        assert (badge.text, badge.attributes["data-state"]) == ("done, with failures", "failed")


async def test_why_it_waits_is_said() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        redrive = await begin(stage)
        await _send(stage, redrive.redrive_id, 3)

        page = f"/redrives/{redrive.redrive_id}"
        assert "Waiting: no consumer is alive on this queue" in (await stage.see(page)).text
        await stage.consumer(version="v1")
        part = await stage.live(page)
        assert "Waiting: the consumer's version is unchanged since the failure: v1" in part.text
        assert numbers(part) == [["Step 1", "3", "3", "0", "0", "0", "0", "0", "3", "0"]]


async def _send(stage: ConsoleStage, redrive_id: str, number: int) -> None:
    claimed = await stage.store.claim(redrive_id, step=0, limit=number)
    await stage.store.sent(redrive_id, {one.letter_id: one.letter_id for one in claimed}, at=stage.clock.now())


class Silent(MemoryBroker):
    async def depth(self, queue: str, *, group: str) -> Depth:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_broker_that_is_silent_does_not_hold_the_page_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrive_page, "PATIENCE", 0.01)
    async with ConsoleStage(brokers={"memory": Silent(clock=ManualClock())}) as stage:
        await stage.collect(1)
        redrive = await begin(stage)
        await _send(stage, redrive.redrive_id, 1)

        assert (
            "Waiting: the broker did not answer within 0.01 s"
            in (await stage.see(f"/redrives/{redrive.redrive_id}")).text
        )
        part = await stage.live(f"/redrives/{redrive.redrive_id}", block="acts")
        assert part.offers(f"/redrives/{redrive.redrive_id}/pause")


async def test_it_is_paused_with_a_reason_resumed_and_cancelled_with_its_count() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(30)
        page = f"/redrives/{(await begin(stage, canary=[1])).redrive_id}"

        async def send(what: str, **fields: str) -> Seen:
            form = (await stage.see(page)).form(f"{page}/{what}")
            return await stage.follow(await stage.post(form.action, {**form.fields, **fields}))

        paused = await send("pause", why="the bank is down")
        assert verdict(paused) == "Sent nothing; paused: the bank is down; 30 untouched"
        assert (paused.offers(f"{page}/pause"), paused.offers(f"{page}/resume")) == (False, True)
        assert "It goes on with 30 letters." in paused.text
        resumed = await send("resume")
        assert resumed.offers(f"{page}/pause")
        assert resumed.form(f"{page}/cancel").buttons == ("Cancel the redrive, leave 30 untouched",)
        cancelled = await send("cancel")
        assert verdict(cancelled) == "Sent nothing; cancelled: 0 resolved, 0 unconfirmed, 30 untouched"
        assert not cancelled.offers(f"{page}/cancel")
        assert (await stage.post(f"{page}/resume")).status_code == 409


async def test_going_on_past_other_failures_says_how_many_there_were() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(10)
        redrive = await begin(stage, canary=[2])
        await stage.while_consuming(stage.service.redriver.run(redrive.redrive_id), lambda _: "another")

        seen = await stage.see(f"/redrives/{redrive.redrive_id}")

        assert "although 2 failed in another way or were not heard of: you have seen that" in seen.text
        assert numbers(seen)[0] == ["Step 1", "2", "2", "0", "0", "2", "0", "0", "0", "0"]


async def test_quiet_has_a_column_of_its_own_where_it_counts() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)
        redrive = await begin(stage, confirm="quiet", to="queue")
        await stage.while_consuming(stage.service.redriver.run(redrive.redrive_id), None)

        seen = await stage.see(f"/redrives/{redrive.redrive_id}")

        assert numbers(seen) == [["Step 1", "2", "2", "0", "2", "0", "0", "0", "0", "0", "0"]]


async def test_it_leads_to_its_letters_and_its_incident() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3, fingerprint="f1")
        made = {}
        for name, choice in (
            ("incident", "fingerprint=f1"),
            ("ids", "letter_id=letter-0&letter_id=letter-2"),
            ("all", "all=true"),
        ):
            seen = await stage.see(f"/redrives/new?{choice}")
            fields: dict[str, Any] = {**seen.form("/redrives/new").fields}
            fields["letter_id"] = [
                one.attributes["value"] for one in seen.root.all("input") if one.attributes.get("name") == "letter_id"
            ]
            fields["preview"] = next(
                one.attributes["value"] for one in seen.root.all("button") if "value" in one.attributes
            )
            answer = await stage.post("/redrives", {name: value for name, value in fields.items() if value})
            made[name] = await stage.see(answer.headers["location"])

        assert made["incident"].link("The letters") == "/letters?fingerprint=f1"
        assert made["incident"].link("The incident") == "/incidents/f1"
        assert made["ids"].link("letter-2") == "/letters/letter-2"
        assert "The letters" not in [text for text, _ in made["all"].links]


async def test_a_viewer_sees_it_and_may_not_change_it() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.collect(3)
        page = f"/redrives/{(await begin(stage)).redrive_id}"
        await stage.as_("viewer")

        seen = await stage.see(page)

        assert verdict(seen).endswith("3 to go")
        for verb in ("pause", "resume", "cancel"):
            assert not seen.offers(f"{page}/{verb}")
            assert (await stage.post(f"{page}/{verb}")).status_code == 403


async def test_a_redrive_that_is_not_there_is_not_found() -> None:
    async with ConsoleStage() as stage:
        assert (await stage.get("/redrives/nothing")).status_code == 404
        assert (await stage.post("/redrives/nothing/pause")).status_code == 404


async def test_what_strangers_wrote_is_text() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2, app_version="<script>alert(1)</script>", group="<img onerror=x> <b> \u202e")
        redrive = await begin(stage)
        await redrives.pause(stage.desk, redrive.redrive_id, why="<script>\x1b[31m")

        seen = await stage.see(f"/redrives/{redrive.redrive_id}")

        assert (len(seen.root.all("script")), len(seen.root.all("img")), seen.root.all("b")) == (1, 1, [])
        assert not {"\u202e", "\x1b"} & {*seen.html}
        assert "<script>alert(1)</script>" in seen.text


@pytest.mark.parametrize(
    "query",
    [
        Query(queue="orders"),
        Query(fingerprint="f1", states=(LetterState.OPEN, LetterState.PARKED)),
        Query(queue="a, b", text="x"),
        Query(queue="orders", text="state=open, queue=mails"),
        Query(text="hello, state=open|parked", states=(LetterState.OPEN,)),
    ],
)
def test_the_words_of_a_selection_lead_to_its_letters_or_nowhere(query: Query) -> None:
    found = filter_address(in_words(query))

    named = {
        name: value
        for name, value in (("queue", query.queue), ("fingerprint", query.fingerprint), ("q", query.text))
        if value
    }
    assert found in (named, None)
    assert found == named or "," in f"{query.queue}{query.text}"


def test_a_selection_that_cannot_be_found_again_leads_nowhere() -> None:
    for words in ("all letters, state=open", "text=*****, state=open|odd", "", "letter=a|b", "queue"):
        assert filter_address(words) is None
    assert letter_ids_in("letter=a|b") == ["a", "b"]
    assert letter_ids_in("queue=orders, state=open") == []
