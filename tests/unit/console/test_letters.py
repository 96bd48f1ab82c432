import json
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, ClassVar

import pytest

from redrive.console.pages.letters import PATIENCE
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.core.stored import Count, LetterRow, Page
from redrive.stores.memory import MemoryStore
from tests.unit.console.seen import Form, Seen
from tests.unit.console.stage import ConsoleStage

EVIL = "<img src=x onerror=alert(1)>\u202e\x1b[31m\x00"
LARGEST_PAGE = 150_000


def search_form(seen: Seen) -> Form:
    return next(one for one in seen.forms if "error_code" in one.fields)


async def test_letters_are_listed_newest_first_and_lead_to_their_pages() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3, error_type="shop.errors.NoCustomer", error_message="no customer 'c-1'")

        seen = await stage.see("/letters")

        assert seen.keys() == ["letter-2", "letter-1", "letter-0"]
        assert seen.link("NoCustomer") == "/letters/letter-2"
        assert "no customer 'c-1'" in seen.text
        assert "3 letters match" in seen.text


async def test_every_condition_lives_in_the_address_and_stands_in_the_form() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)
        await stage.collect(
            1, prefix="bill", queue="billing", error_type="TimeoutError", user_id="u-7", tenant_id="t-1"
        )
        conditions = {
            "q": "bill-0",
            "queue": "billing",
            "error_type": "TimeoutError",
            "reason": "rejected",
            "user_id": "u-7",
            "tenant_id": "t-1",
        }

        seen = await stage.see("/letters?" + "&".join(f"{name}={value}" for name, value in conditions.items()))

        assert seen.keys() == ["bill-0"]
        form = search_form(seen)
        assert {name: form.fields[name] for name in conditions} == conditions


async def test_a_condition_is_taken_away_by_its_chip() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)
        await stage.collect(1, prefix="bill", queue="billing")

        seen = await stage.see("/letters?queue=billing&error_type=ValueError")
        without = next(href for text, href in seen.links if text.startswith("Queue billing"))

        assert without == "/letters?error_type=ValueError"
        assert len((await stage.see(without)).keys()) == 3


async def test_fields_that_were_left_empty_do_not_stay_in_the_address() -> None:
    async with ConsoleStage() as stage:
        answer = await stage.get("/letters?q=&queue=orders&reason=&from=2026-01-31T08:00&to=")

        assert answer.status_code == HTTPStatus.SEE_OTHER
        assert answer.headers["location"] == "/letters?queue=orders&from=2026-01-31T08%3A00Z"


async def test_instants_are_in_utc_as_a_browsers_own_field_has_them() -> None:
    async with ConsoleStage() as stage:
        before, after = datetime(2026, 1, 31, 7, tzinfo=UTC), datetime(2026, 1, 31, 9, tzinfo=UTC)
        await stage.collect(1, prefix="before", failed_at=before)
        await stage.collect(1, prefix="after", failed_at=after)

        seen = await stage.follow(await stage.get("/letters?from=2026-01-31T08:00"))

        assert seen.keys() == ["after-0"]
        form = search_form(seen)
        assert form.fields["from"] == "2026-01-31T08:00:00"


async def test_a_condition_that_means_nothing_is_named_and_nothing_is_searched() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)

        answer = await stage.get("/letters?from=yesterday&queue=orders")

        assert answer.status_code == HTTPStatus.BAD_REQUEST
        assert "from: expected an instant" in answer.text
        assert 'value="orders"' in answer.text  # what was typed is not lost
        assert "letter-0" not in answer.text


@pytest.mark.parametrize("after", ["nonsense", "%00"])
async def test_a_cursor_that_is_none_is_refused(after: str) -> None:
    async with ConsoleStage() as stage:
        assert (await stage.get(f"/letters?after={after}")).status_code == HTTPStatus.BAD_REQUEST


async def test_states_have_tabs_with_exact_counts() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        await stage.store.discard({"letter-1": 1}, act=stage.desk.act("letters.discard"))

        seen = await stage.see("/letters")

        assert ("open 2", "/letters?state=open") in seen.links
        assert ("discarded 1", "/letters?state=discarded") in seen.links
        assert (await stage.see("/letters?state=discarded")).keys() == ["letter-1"]


async def test_tabs_have_no_counts_where_nobody_has_counted() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)

        assert ("open", "/letters?state=open&q=order") in (await stage.see("/letters?q=order")).links


async def test_queues_and_errors_are_offered_as_they_are_in_the_store() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        await stage.collect(1, prefix="bill", queue="billing", error_type="TimeoutError")
        await stage.collect(1, prefix="leak", error_type="password=hunter2hunter2")

        offered = [one.attributes["value"] for one in (await stage.see("/letters")).root.all("option")]

        assert {"orders", "billing", "ValueError", "TimeoutError"} <= {*offered}
        assert not any("hunter2" in one for one in offered)


async def test_a_page_of_fifty_leads_to_older_ones_with_the_same_conditions() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(60)

        first = await stage.see("/letters?queue=orders")
        second = await stage.see(first.link("Older"))

        assert len(first.keys()) == 50
        assert second.keys() == [f"letter-{number}" for number in reversed(range(10))]
        assert second.link("To the newest") == "/letters?queue=orders"
        assert not any(text == "Older" for text, _ in second.links)


class _Slow(MemoryStore):
    """Looks through a part of the letters at a time, and finds nothing in it."""

    patience: ClassVar[list[timedelta | None]] = []

    async def find(
        self, query: Query, *, limit: int = 50, after: str | None = None, patience: timedelta | None = None
    ) -> Page[LetterRow]:
        self.patience.append(patience)
        return Page((), "997")

    async def count(self, query: Query, *, cap: int = 10_000, patience: timedelta | None = None) -> Count:
        self.patience.append(patience)
        return Count(cap, capped=True)


async def test_a_page_that_took_too_long_says_that_there_is_more_to_look_through() -> None:
    async with ConsoleStage(store=_Slow) as stage:
        seen = await stage.see("/letters?q=needle")

        assert "Nothing so far" in seen.text
        assert seen.link("Go on looking") == "/letters?q=needle&after=997"


async def test_whoever_looks_through_many_letters_waits_for_less_than_a_tenth_of_a_second_at_a_time() -> None:
    async with ConsoleStage(store=_Slow) as stage:
        _Slow.patience.clear()
        await stage.see("/letters?tenant_id=acme")

        assert _Slow.patience == [PATIENCE, PATIENCE]
        assert timedelta(milliseconds=50) >= PATIENCE


async def test_a_count_that_is_capped_says_so() -> None:
    class Many(MemoryStore):
        async def count(self, query: Query, *, cap: int = 10_000, patience: timedelta | None = None) -> Count:
            return Count(cap, capped=True)

    async with ConsoleStage(store=Many) as stage:
        await stage.collect(1)

        assert "10,000+ letters match" in (await stage.see("/letters?q=order")).text


async def test_some_letters_are_chosen_by_ticking_them() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)

        seen = await stage.see("/letters")
        boxes = [one for one in seen.root.all("input") if one.attributes.get("name") == "letter_id"]
        buttons = {
            one.text: one.attributes["formaction"] for one in seen.root.all("button") if "formaction" in one.attributes
        }

        assert [one.attributes["value"] for one in boxes] == ["letter-1", "letter-0"]
        assert {one.attributes["form"] for one in boxes} == {"selection"}
        assert buttons == {"Redrive…": "/redrives/new", "Discard…": "/discard", "Export": "/letters/export"}
        assert seen.form("/redrives/new").method == "get"


async def test_all_that_match_are_chosen_by_their_filter() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)

        filtered, every = await stage.see("/letters?queue=orders&state=open"), await stage.see("/letters")

        assert filtered.link("Redrive all") == "/redrives/new?queue=orders&state=open"
        assert filtered.link("Discard all") == "/discard?queue=orders&state=open"
        assert every.link("Redrive all") == "/redrives/new?all=true"
        assert "All that match: 2" in every.text


async def test_a_viewer_is_offered_nothing_but_to_look() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        await stage.as_("viewer")

        seen = await stage.see("/letters")

        assert not seen.offers("/redrives/new")
        assert not seen.offers("/letters/export")
        assert not any("Redrive all" in text or "Discard" in text for text, _ in seen.links)
        assert not [one for one in seen.root.all("input") if one.attributes.get("type") == "checkbox"]


async def test_deaths_of_the_last_day_are_drawn_with_a_table_behind_them() -> None:
    async with ConsoleStage() as stage:
        now = stage.clock.now()
        await stage.collect(3)
        await stage.collect(2, prefix="old", failed_at=now - timedelta(hours=2))
        await stage.collect(1, prefix="other", queue="billing", error_type="TimeoutError")

        seen = await stage.see("/letters?queue=orders&error_type=ValueError")

        assert "Deaths per hour, last day 5" in seen.text
        table = next(one for one in seen.root.all("details") if one.attributes.get("id") == "deaths-table")
        assert [row.all("td")[1].text for row in table.all("tr") if row.all("td")] == ["2", "3"]
        hour = table.all("a")[0].attributes["href"]
        assert len((await stage.see(hour)).keys()) == 2


async def test_no_deaths_are_drawn_that_nobody_has_counted() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)

        assert "Deaths per hour" not in (await stage.see("/letters?user_id=u-1")).text
        assert "Deaths per hour" not in (await stage.see("/letters?q=order")).text


async def test_a_search_that_is_dear_is_not_repeated_by_itself() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(60)

        def is_live(html: str) -> bool:
            return 'data-live="live"' in html

        assert is_live((await stage.see("/letters?queue=orders&state=open")).html)
        assert not is_live((await stage.see("/letters?q=order")).html)
        assert not is_live((await stage.see((await stage.see("/letters")).link("Older"))).html)


async def test_the_list_is_fetched_again_alone() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(2)

        part = await stage.live("/letters")

        assert part.keys() == ["letter-1", "letter-0"]
        assert "Letters" not in part.headings


async def test_the_count_that_redrive_all_stands_beside_and_the_way_to_older_ones_stay_fresh() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(51)
        before = await stage.live("/letters")
        await stage.collect(1, prefix="late")

        part = await stage.live("/letters")

        assert "All that match: 52" in part.text
        assert part.link("Older") != before.link("Older")


async def test_no_letters_at_all_and_none_that_match_are_told_apart() -> None:
    async with ConsoleStage() as stage:
        assert "No letters yet" in (await stage.see("/letters")).text
        await stage.collect(1)
        assert "No letter matches" in (await stage.see("/letters?queue=elsewhere")).text


async def test_secrets_in_a_list_are_masked_and_hostile_texts_are_texts() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(
            50,
            error_type=EVIL * 30,
            error_message=f"password=hunter2hunter2 {EVIL * 500}",
            queue=EVIL * 30,
            user_id=EVIL * 30,
            reason=Reason.UNKNOWN,
        )

        seen = await stage.see("/letters")

        assert "hunter2" not in seen.html
        assert "<img src=x" not in seen.html
        assert "\u202e" not in seen.html
        assert "\x1b" not in seen.html
        assert len(seen.html.encode()) < LARGEST_PAGE


async def test_a_letter_whose_id_is_no_address_is_listed_without_one() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(50, prefix="<b>" * 3000)

        seen = await stage.see("/letters")

        assert seen.keys() == []
        assert "its id is too long" in seen.text
        assert len(seen.html.encode()) < LARGEST_PAGE


async def test_an_export_is_masked_and_of_what_matches() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b'{"password": "hunter2"}')
        await stage.collect(1, prefix="bill", queue="billing")
        await stage.as_("viewer")

        answer = await stage.get("/letters/export?queue=orders")
        lines = [json.loads(line) for line in answer.text.splitlines()]

        assert answer.headers["content-disposition"] == 'attachment; filename="letters.jsonl"'
        assert [line["letter_id"] for line in lines] == ["letter-0"]
        assert "hunter2" not in answer.text
        assert await stage.verbs() == ["tokens.issue"]


async def test_an_export_of_ticked_letters_has_just_these() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)

        answer = await stage.get("/letters/export?letter_id=letter-2&letter_id=letter-0")

        assert [json.loads(line)["letter_id"] for line in answer.text.splitlines()] == ["letter-2", "letter-0"]


async def test_an_export_of_nothing_in_particular_is_refused() -> None:
    async with ConsoleStage() as stage:
        assert (await stage.get("/letters/export")).status_code == HTTPStatus.BAD_REQUEST


async def test_an_unmasked_export_is_an_act_that_goes_on_record() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, payload=b'{"password": "hunter2"}')
        form = (await stage.see("/letters?queue=orders")).form("/letters/export")

        answer = await stage.post(form.action, form.fields)

        assert form.method == "post"
        assert "hunter2" in str(json.loads(answer.text))
        assert await stage.verbs() == ["letters.export"]


async def test_a_viewer_cannot_export_what_is_masked() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        await stage.as_("viewer")

        assert (await stage.post("/letters/export", {"all": "true"})).status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("state", [*LetterState])
async def test_a_state_can_be_asked_for(state: LetterState) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)

        expected: list[Any] = ["letter-0"] if state is LetterState.OPEN else []
        assert (await stage.see(f"/letters?state={state}")).keys() == expected
