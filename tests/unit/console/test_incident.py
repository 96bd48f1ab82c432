from datetime import UTC, datetime, timedelta

import pytest

from redrive.console.hours import MOST, course_of
from redrive.core.life import GENERATION_CAP
from redrive.triage import incidents, letters
from tests.unit.console.stage import ConsoleStage

NOW = datetime(2026, 3, 4, 12, 30, tzinfo=UTC)
HOUR = NOW.replace(minute=0)


async def test_the_failure_is_shown_as_people_read_it() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(
            4,
            fingerprint="f1",
            error_type="shop.errors.OutOfStock",
            error_message="none left of sku-7",
            tenant_id="acme",
            stack='Traceback\n  File "shop.py", line 7, in charge\nshop.errors.OutOfStock: none left of sku-7',
        )

        seen = await stage.see("/incidents/f1")

        assert seen.headings[0] == "OutOfStock"
        assert "none left of sku-7" in seen.text
        assert "shop.errors.OutOfStock" in seen.text
        assert 'File "shop.py", line 7, in charge' in seen.text
        facts = [
            *zip((one.text for one in seen.root.all("dt")), (one.text for one in seen.root.all("dd")), strict=True)
        ]
        assert {("queue", "orders"), ("tenant_id", "acme"), ("app_version", "v1")} <= {*facts}
        assert "The most in one hour: 4 of 4, from " in seen.text
        assert "00:00 UTC on." in seen.text
        assert seen.keys() == ["letter-3", "letter-2", "letter-1", "letter-0"]
        assert seen.link("letter-3") == "/letters/letter-3"


async def test_all_of_it_is_offered_with_its_count() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3, fingerprint="f1")
        await stage.collect(1, prefix="parked", fingerprint="f1", generation=GENERATION_CAP)
        await letters.discard(stage.desk, await stage.selection(letter_ids=["letter-1"]))

        seen = await stage.see("/incidents/f1")

        assert seen.link("Redrive all 2") == "/redrives/new?fingerprint=f1"
        assert seen.link("Discard all 3") == "/discard?fingerprint=f1"
        assert seen.link("Its letters") == "/letters?fingerprint=f1"


async def test_hours_are_bars_that_lead_to_their_letters_with_a_table_behind() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2, fingerprint="f1")
        stage.clock.advance("3h")
        await stage.collect(5, prefix="later", fingerprint="f1")

        seen = await stage.see("/incidents/f1")

        charted = [(text, href) for text, href in seen.links if "from=" in href]
        assert [text.split(" ")[0] for text, _ in charted] == ["2", "5"]
        assert charted[0][1] == ("/letters?fingerprint=f1&from=2030-01-01T00%3A00%3A00Z&to=2030-01-01T01%3A00%3A00Z")
        assert [row for row in seen.rows if row[0].endswith("UTC")] == [
            ["2030-01-01 03:00:00 UTC", "5"],
            ["2030-01-01 00:00:00 UTC", "2"],
        ]
        assert (await stage.get(charted[0][1])).status_code == 200


async def test_it_is_noted_assigned_muted_resolved_and_reopened() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, fingerprint="f1")

        async def send(what: str, **fields: str) -> str:
            form = (await stage.see("/incidents/f1")).form(f"/incidents/f1/{what}")
            return (await stage.follow(await stage.post(form.action, {**form.fields, **fields}))).text

        assert "Noted." in await send("note", text="since the rollout\r\nof Tuesday")
        assert "kim looks after it." in await send("assign", assignee="kim")
        assert "local looks after it." in await send("assign", me="true")
        assert "Muted" in await send("mute")
        assert "Resolved" in await send("resolve")
        assert "Open again." in await send("reopen")

        row = await stage.store.incident("f1")
        assert (row.state, row.note, row.assignee) == ("open", "since the rollout\nof Tuesday", "local")
        assert await stage.verbs() == [
            f"incidents.{verb}" for verb in ("note", "assign", "assign", "mute", "resolve", "reopen")
        ]


@pytest.mark.parametrize(("what", "fields"), [("note", {"text": "x" * 4001}), ("assign", {"assignee": "x" * 201})])
async def test_a_text_that_is_too_long_is_refused(what: str, fields: dict[str, str]) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, fingerprint="f1")

        answer = await stage.post(f"/incidents/f1/{what}", fields)

        assert (answer.status_code, "expected at most" in answer.text) == (400, True)
        assert await stage.verbs() == []


async def test_a_viewer_sees_it_and_is_offered_nothing() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.collect(2, fingerprint="f1")
        await incidents.note(stage.desk, "f1", "since the rollout")
        await stage.as_("viewer")

        seen = await stage.see("/incidents/f1")

        assert "since the rollout" in seen.text
        assert not [form.action for form in seen.forms if form.action.startswith("/incidents")]
        assert not [text for text, _ in seen.links if text.startswith(("Redrive all", "Discard all"))]
        for verb in ("note", "assign", "mute", "resolve", "reopen"):
            assert (await stage.post(f"/incidents/f1/{verb}")).status_code == 403


async def test_an_incident_that_is_not_there_is_not_found() -> None:
    async with ConsoleStage() as stage:
        assert (await stage.get("/incidents/nothing")).status_code == 404
        assert (await stage.post("/incidents/nothing/mute")).status_code == 404


async def test_its_figures_stay_fresh() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2, fingerprint="f1")
        await stage.collect(3, prefix="later", fingerprint="f1")

        part = await stage.live("/incidents/f1")

        assert "5 open 5 in all" in part.text
        assert "Latest letters" not in part.text


async def test_what_strangers_wrote_is_text_and_the_page_stays_small() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(
            50,
            fingerprint="a/b <i>%41",
            queue="<script>alert(1)</script>",
            error_type="</title><script>alert(1)</script>",
            error_message="password=hunter2 <img src=x onerror=alert(1)> \u202e" + "x" * 8000,
            stack="<script>alert(1)</script> \x1b[31m\n" * 40_000,
            context={"<b>name</b>": "token: rdt_0123456789"},
            payload=b"\xff" * 300_000,
        )

        seen = await stage.see((await stage.see("/incidents")).link("script"))

        assert len(seen.root.all("script")) == 1  # the page's own
        assert "<script>alert(1)</script>" in seen.text
        assert "hunter2" not in seen.html
        assert not {"\u202e", "\x1b"} & {*seen.html}
        assert len(seen.html.encode()) < 150_000


def test_an_incident_of_hours_is_told_by_the_hour_over_a_day_at_least() -> None:
    course = course_of([(HOUR - timedelta(hours=2), 7), (HOUR, 1)], now=NOW)

    assert (course.step, len(course.spans)) == (timedelta(hours=1), 24)
    assert [span.deaths for span in course.spans[-3:]] == [7, 0, 1]
    assert course.spans[-1].at == HOUR


@pytest.mark.parametrize("days", [5, 30, 90, 400, 20_000])
def test_a_longer_one_in_longer_spans_and_nothing_is_left_uncounted(days: int) -> None:
    hours = [(HOUR - timedelta(days=back), 2) for back in range(0, days, max(1, days // 50))]

    course = course_of([*reversed(hours), (HOUR + timedelta(days=900), 1)], now=NOW)

    assert len(course.spans) <= MOST
    assert course.spans[-1].at <= NOW < course.spans[-1].at + course.step
    assert sum(span.deaths for span in course.spans) + course.earlier == 2 * len(hours) + 1
    assert (course.earlier > 0) == (days > 30 * MOST)


def test_an_incident_whose_hours_are_gone_has_an_empty_chart() -> None:
    assert sum(span.deaths for span in course_of([], now=NOW).spans) == 0


async def test_a_mute_may_have_an_end_and_the_page_says_when() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        ((incident,),) = [(await stage.store.incidents()).rows]
        form = (await stage.see(f"/incidents/{incident.incident_id}")).form(f"/incidents/{incident.incident_id}/mute")
        assert form.fields["ends_in"] == ""

        seen = await stage.follow(await stage.post(form.action, {"ends_in": "8h"}))
        wrong = await stage.post(form.action, {"ends_in": "soon"})
        kept = await stage.store.incident(incident.incident_id)

    assert kept.muted_until == stage.clock.now() + timedelta(hours=8)
    assert "until 2030-01-01 08:00" in seen.text
    assert wrong.status_code == 400
