import pytest

from redrive.triage import incidents
from tests.unit.console.stage import ConsoleStage

HOSTILE = "<img src=x onerror=alert(1)> \u202egnp.exe \x1b[31m"


async def test_incidents_are_listed_with_what_people_ask_first() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3, error_type="KeyError", error_message="'customer'", fingerprint="f1")
        stage.clock.advance("2h")
        await stage.collect(2, prefix="mail", queue="mails", error_type="TimeoutError", fingerprint="f2")
        await incidents.assign(stage.desk, "f1", "kim")
        await incidents.note(stage.desk, "f1", "since the rollout")

        seen = await stage.see("/incidents")

        assert seen.keys() == ["f2", "f1"]
        assert seen.link("KeyError") == "/incidents/f1"
        _, row = seen.rows
        assert row[0] == "KeyError 'customer' Note: since the rollout"
        assert row[1:3] == ["3", "3"]
        assert row[4:8] == ["2h ago", "2h ago", "orders", "kim"]
        label = next(one.attributes["aria-label"] for one in seen.root.all("svg"))
        assert label == "Died in the last 24 hours: 2, the most in one hour: 2"


@pytest.mark.parametrize("path", ["/", "/incidents"])
async def test_the_chart_in_a_row_leads_to_the_table_behind_it(path: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3, fingerprint="f1")

        row = next(one for one in (await stage.see(path)).root.all("tr") if "data-key" in one.attributes)
        (link,) = [one for one in row.all("a") if one.all("svg")]
        there = await stage.see("/incidents/f1")

    assert link.attributes["href"] == "/incidents/f1#course"
    assert [one.tag for one in there.root.walk() if one.attributes.get("id") == "course"] == ["table"]


async def test_each_state_has_its_tab() -> None:
    async with ConsoleStage() as stage:
        for name in ("open", "muted", "resolved"):
            await stage.collect(1, prefix=name, fingerprint=name)
        await incidents.mute(stage.desk, "muted")
        await incidents.resolve(stage.desk, "resolved")

        assert (await stage.see("/incidents")).keys() == ["open"]
        for name in ("open", "muted", "resolved"):
            assert (await stage.see(f"/incidents?state={name}")).keys() == [name]
        everything = await stage.see("/incidents?state=all")
        assert sorted(everything.keys()) == ["muted", "open", "resolved"]
        assert [text for text, _ in everything.links if text in ("Open", "Muted", "Resolved", "All")] == [
            *("Open", "Muted", "Resolved", "All")
        ]
        assert (await stage.get("/incidents?state=odd")).status_code == 400


async def test_more_incidents_than_a_page_has_are_behind_older() -> None:
    async with ConsoleStage() as stage:
        for number in range(60):
            await stage.collect(1, prefix=f"l{number}", fingerprint=f"f{number}")
            stage.clock.advance("1s")

        first = await stage.see("/incidents")
        second = await stage.see(first.link("Older"))

        assert (*first.keys(), *second.keys()) == tuple(f"f{number}" for number in reversed(range(60)))
        assert len(first.keys()) == 50
        assert "Older" not in second.text
        answer = await stage.get("/incidents?after=nonsense")
        assert (answer.status_code, "begin at its top" in answer.text) == (400, True)


@pytest.mark.parametrize(("state", "said"), [("open", "Nothing is failing"), ("muted", "No muted incidents")])
async def test_an_empty_list_says_what_to_do_next(state: str, said: str) -> None:
    async with ConsoleStage() as stage:
        seen = await stage.see(f"/incidents?state={state}")

        assert said in seen.headings
        assert seen.link("incidents").startswith("/incidents")


async def test_an_incident_is_muted_and_reopened_from_the_list() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, fingerprint="f1")

        form = (await stage.see("/incidents")).form("/incidents/f1/mute")
        said = await stage.follow(await stage.post(form.action, form.fields))
        assert ("Muted" in said.text, said.keys()) == (True, [])

        form = (await stage.see("/incidents?state=muted")).form("/incidents/f1/reopen")
        assert (await stage.follow(await stage.post(form.action, form.fields))).keys() == ["f1"]


async def test_a_viewer_is_offered_no_change() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.collect(1, fingerprint="f1")
        await stage.as_("viewer")

        seen = await stage.see("/incidents")

        assert (seen.keys(), seen.offers("/incidents/f1/mute")) == (["f1"], False)
        assert (await stage.post("/incidents/f1/mute")).status_code == 403
        assert (await stage.store.incident("f1")).state == "open"


async def test_new_incidents_come_by_themselves() -> None:
    async with ConsoleStage() as stage:
        assert (await stage.live("/incidents")).keys() == []
        await stage.collect(1, fingerprint="f1")

        part = await stage.live("/incidents")

        assert (part.keys(), part.root.all("html")) == (["f1"], [])


async def test_what_strangers_wrote_is_text_secrets_are_hidden_and_the_page_stays_small() -> None:
    async with ConsoleStage() as stage:
        for number in range(50):
            await stage.collect(
                1,
                prefix=f"l{number}",
                fingerprint=f"f{number}",
                queue=HOSTILE,
                error_type=HOSTILE,
                error_message=f"password=hunter2 {HOSTILE} {'x' * 8000}",
            )

        seen = await stage.see("/incidents")

        assert [one.attributes.get("alt") for one in seen.root.all("img")] == [""]  # only the icon
        assert "<img src=x onerror=alert(1)>" in seen.text
        assert not {"\u202e", "\x1b"} & {*seen.html}
        assert "hunter2" not in seen.html
        assert len(seen.html) < 150_000


async def test_a_strangers_fingerprint_of_any_length_does_no_harm() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, prefix="none", fingerprint="")
        for number in range(48):
            await stage.collect(1, prefix=f"l{number}", fingerprint=f"{number}{'<' * 5000}", queue="q" * 5000)
        await stage.collect(1, prefix="odd", fingerprint="a/b?c#d%41 é")

        seen = await stage.see("/incidents")

        assert len(seen.html.encode()) < 150_000
        assert (await stage.see(seen.link("ValueError"))).link("Redrive all 1") == (
            "/redrives/new?fingerprint=a%2Fb%3Fc%23d%2541+%C3%A9"
        )
