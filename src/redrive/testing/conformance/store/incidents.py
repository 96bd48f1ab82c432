"""Incidents: letters with one fingerprint, counted as they move."""

from datetime import timedelta

import pytest

from redrive.core.errors import LetterNotFound
from redrive.core.stored import IncidentChange, IncidentRow
from redrive.testing.conformance.store.bench import AT, Bench, Suite, an_act, an_outcome, letter

HOUR = AT.replace(minute=0)


class Incidents(Suite):
    """`incidents`, `incident`, `incident_hours` and `change_incident`."""

    async def test_an_incident_tells_how_many_since_when_and_where(self, bench: Bench) -> None:
        later = AT + timedelta(hours=2)
        await bench.dead("a", "b")
        await bench.dead("c", queue="mail", failed_at=later, error_message="the latest")

        assert await bench.store.incident("f1") == IncidentRow(
            incident_id="f1",
            fingerprint="f1",
            error_type="ValueError",
            error_message="the latest",
            open=3,
            total=3,
            first_at=AT,
            last_at=later,
            queues=("mail", "orders"),
            hours=((HOUR, 2), (HOUR + timedelta(hours=2), 1)),
        )

    async def test_the_latest_incident_comes_first_page_by_page(self, bench: Bench) -> None:
        for number in range(5):
            await bench.dead(f"l{number}", fingerprint=f"f{number}", failed_at=AT + timedelta(hours=number % 3))
        found, after = [], None
        while True:
            page = await bench.store.incidents(limit=2, after=after)
            found.append([row.fingerprint for row in page.rows])
            if (after := page.after) is None:
                break

        assert found == [["f2", "f4"], ["f1", "f3"], ["f0"]]

    async def test_incidents_that_began_since_are_asked_for(self, bench: Bench) -> None:
        for number in range(4):
            await bench.dead(f"l{number}", fingerprint=f"f{number}", failed_at=AT + timedelta(hours=number))
        await bench.dead("again", fingerprint="f1", failed_at=AT + timedelta(hours=9))
        since = AT + timedelta(hours=2)
        first = await bench.store.incidents(limit=1, since=since)
        second = await bench.store.incidents(limit=1, since=since, after=first.after)

        assert [row.fingerprint for row in (await bench.store.incidents()).rows] == ["f1", "f3", "f2", "f0"]
        assert [row.fingerprint for page in (first, second) for row in page.rows] == ["f3", "f2"]
        assert second.after is None
        assert (await bench.store.incidents(state="muted", since=since)).rows == []

    async def test_the_hours_of_several_incidents_are_told_at_once(self, bench: Bench) -> None:
        for hours in (0, 1, 3):
            await bench.dead(f"a{hours}", f"b{hours}", failed_at=AT + timedelta(hours=hours))
        await bench.dead("c", fingerprint="f2", failed_at=AT + timedelta(hours=2))
        await bench.dead("d", fingerprint="f3")

        assert await bench.store.incident_hours(["f1", "f2", "f3", "nothing"], since=HOUR + timedelta(hours=1)) == {
            "f1": [(HOUR + timedelta(hours=1), 2), (HOUR + timedelta(hours=3), 2)],
            "f2": [(HOUR + timedelta(hours=2), 1)],
        }
        assert await bench.store.incident_hours([], since=HOUR) == {}

    async def test_an_incident_without_open_letters_is_resolved_until_one_comes(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.store.collect([], [an_outcome("a", 1)])
        await bench.store.discard({"b": 1}, act=an_act("letters.discard"))
        row = await bench.store.incident("f1")
        assert (row.open, row.total, row.state) == (0, 2, "resolved")
        assert (await bench.store.incidents()).rows == []
        assert len((await bench.store.incidents(state="resolved")).rows) == 1

        await bench.dead("c")
        row = await bench.store.incident("f1")
        assert (row.open, row.total, row.state) == (1, 3, "open")

    async def test_collecting_tells_how_many_incidents_it_opened(self, bench: Bench) -> None:
        first = await bench.store.collect([letter("a"), letter("b"), letter("c", fingerprint="f2")])
        known = await bench.store.collect([letter("d")])
        await bench.store.change_incident("f1", IncidentChange(state="resolved"), act=an_act("incidents.resolve"))
        again = await bench.store.collect([letter("e")])
        await bench.store.change_incident("f2", IncidentChange(state="muted"), act=an_act("incidents.mute"))
        muted = await bench.store.collect([letter("f", fingerprint="f2")])

        assert [one.incidents for one in (first, known, again, muted)] == [2, 0, 1, 0]

    async def test_letters_that_are_out_are_still_open(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await bench.send()

        assert (await bench.store.incident("f1")).open == 1

    async def test_a_relapse_in_another_way_moves_its_letter(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.dead("a", generation=1, fingerprint="f2")
        first, second = await bench.store.incident("f1"), await bench.store.incident("f2")

        assert (first.open, first.total, second.open, second.total) == (1, 1, 1, 1)

    async def test_a_person_resolves_and_a_new_letter_opens_it_again(self, bench: Bench) -> None:
        await bench.dead("a")
        act = an_act("incidents.resolve")
        row = await bench.store.change_incident("f1", IncidentChange(state="resolved"), act=act)
        assert (row.state, row.open) == ("resolved", 1)
        await bench.dead("a")
        assert (await bench.store.incident("f1")).state == "resolved"

        await bench.dead("b")
        assert (await bench.store.incident("f1")).state == "open"

    async def test_a_muted_incident_stays_muted(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.store.change_incident("f1", IncidentChange(state="muted"), act=an_act("incidents.mute"))
        await bench.dead("b")
        await bench.store.collect([], [an_outcome("a", 1), an_outcome("b", 1)])

        row = await bench.store.incident("f1")
        assert (row.state, row.open, row.total) == ("muted", 0, 2)
        assert [row.fingerprint for row in (await bench.store.incidents(state="muted")).rows] == ["f1"]

    async def test_a_mute_may_have_an_end_which_goes_with_it(self, bench: Bench) -> None:
        until = AT + timedelta(days=1, microseconds=1)
        await bench.dead("a")
        mute = IncidentChange(state="muted", muted_until=until)
        muted = await bench.store.change_incident("f1", mute, act=an_act("incidents.mute"))
        assert muted == await bench.store.incident("f1")
        assert (muted.state, muted.muted_until) == ("muted", until)
        await bench.store.change_incident("f1", IncidentChange(note="known"), act=an_act("incidents.note"))
        await bench.dead("b")
        assert (await bench.store.incident("f1")).muted_until == until

        opened = await bench.store.change_incident("f1", IncidentChange(state="open"), act=an_act("incidents.reopen"))

        assert (opened.state, opened.muted_until, opened.note) == ("open", None, "known")
        assert [one.detail.get("muted_until") for one in (await bench.store.records()).rows] == [
            None,
            None,
            until.isoformat(),
        ]

    async def test_a_relapse_is_counted_when_letters_open_a_resolved_incident(self, bench: Bench) -> None:
        seen = []
        await bench.dead("a", "b")
        seen.append((await bench.store.incident("f1")).relapses)
        await bench.store.discard({"a": 1, "b": 1}, act=an_act("letters.discard"))
        seen.append((await bench.store.incident("f1")).relapses)
        await bench.dead("c")
        await bench.dead("d")
        seen.append((await bench.store.incident("f1")).relapses)
        await bench.store.change_incident("f1", IncidentChange(state="resolved"), act=an_act("incidents.resolve"))
        await bench.store.change_incident("f1", IncidentChange(state="open"), act=an_act("incidents.reopen"))
        seen.append((await bench.store.incident("f1")).relapses)
        await bench.store.change_incident("f1", IncidentChange(state="resolved"), act=an_act("incidents.resolve"))
        await bench.dead("a", generation=1)
        seen.append((await bench.store.incident("f1")).relapses)

        assert seen == [0, 0, 1, 1, 2]
        assert (await bench.store.incidents()).rows[0].relapses == 2

    async def test_note_and_assignee_stay_until_changed(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.store.change_incident("f1", IncidentChange(note="known bug"), act=an_act("incidents.note"))
        await bench.store.change_incident("f1", IncidentChange(assignee="bob"), act=an_act("incidents.assign"))
        await bench.dead("b")

        row = await bench.store.incident("f1")
        assert (row.note, row.assignee, row.state) == ("known bug", "bob", "open")

    async def test_an_incident_that_is_not_there_is_not_found(self, bench: Bench) -> None:
        with pytest.raises(LetterNotFound, match="nothing"):
            await bench.store.incident("nothing")
        with pytest.raises(LetterNotFound, match="nothing"):
            await bench.store.change_incident("nothing", IncidentChange(note="x"), act=an_act("incidents.note"))
