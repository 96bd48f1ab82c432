"""The audit: who did what to which letters."""

import asyncio
from datetime import timedelta, timezone

from redrive.core.letter import payload_hash
from redrive.core.query import Query
from redrive.core.redrive import RedriveState
from redrive.core.stored import Collected, Edit, IncidentChange
from redrive.testing.conformance.store.bench import AT, Bench, Suite, an_act, an_outcome, letter


class Auditing(Suite):
    """`records` and `verify`."""

    async def test_an_operation_has_one_record_and_each_letter_one(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")
        act = an_act("letters.discard", selection="queue orders", detail={"via": ["cli", 1]})
        await bench.store.discard({"a": 1, "b": 1, "c": 7}, act=act)
        page = await bench.store.records()

        assert [(one.verb, one.letter_id, one.count) for one in reversed(page.rows)] == [
            ("letters.discard", "", 2),
            ("letters.discard", "a", None),
            ("letters.discard", "b", None),
        ]
        operation = page.rows[-1]
        assert (operation.who, operation.at, operation.selection) == ("ann", AT, "queue orders")
        assert operation.detail == {"via": ["cli", 1]}
        assert {one.operation_id for one in page.rows} == {act.operation_id}
        assert page.rows[0].detail == {"state": ["open", "discarded"]}

    async def test_several_calls_of_one_operation_have_one_record_for_it(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        act = an_act("letters.discard", count=2)
        await bench.store.discard({"a": 1}, act=act)
        await bench.store.discard({"b": 1}, act=act)

        records = (await bench.store.records()).rows
        assert [(one.letter_id, one.count) for one in reversed(records)] == [("", 2), ("a", None), ("b", None)]

    async def test_hashes_tell_what_would_be_sent_before_and_after(self, bench: Bench) -> None:
        (original,) = await bench.dead("a")
        edit = Edit(body=b"mended", headers=(), by="ann", edited_at=AT)
        await bench.edit("a", edit)
        await bench.plan("a")
        await bench.claim()
        await bench.store.collect([], [an_outcome("a", 1)])
        await bench.store.purge(Query(), before=AT + timedelta(days=1), limit=1, act=an_act("letters.purge"))
        records = (await bench.store.records(letter_id="a")).rows

        old, new = original.payload_sha256, payload_hash(b"mended")
        assert [(one.verb, one.before_sha256, one.after_sha256) for one in reversed(records)] == [
            ("letters.edit", old, new),
            ("letters.redrive", old, new),
            ("letters.purge", new, ""),
        ]

    async def test_every_verb_is_recorded(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.store.note("a", "look", act=an_act("letters.note"))
        await bench.store.change_incident("f1", IncidentChange(assignee="bob"), act=an_act("incidents.assign"))
        await bench.plan("a")
        await bench.store.mark("r1", RedriveState.CANCELLED, why="no", act=an_act("redrives.cancel"))
        await bench.store.mark("r1", RedriveState.CANCELLED, why="no", act=an_act("redrives.cancel"))
        records = [*reversed((await bench.store.records()).rows)]

        assert [(one.verb, one.letter_id) for one in records] == [
            ("letters.note", ""),
            ("letters.note", "a"),
            ("incidents.assign", ""),
            ("letters.redrive", ""),
            ("redrives.cancel", ""),
        ]
        assert records[2].detail == {"incident": "f1", "assignee": "bob"}
        assert records[4].detail["state"] == ["running", "cancelled"]

    async def test_letters_that_a_person_brings_are_recorded(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.edit("b", Edit(body=b"mended", headers=(), by="ann", edited_at=AT))
        before = len((await bench.store.records()).rows)
        act = an_act("letters.import", selection="lines 1 to 4 of letters.jsonl", detail={"refused": 1})
        changed = letter("a", generation=1, payload=b"another")
        told = [letter("a"), changed, letter("b", generation=1), letter("c")]
        collected = await bench.store.collect(told, act=act)
        operation, *records = [*reversed((await bench.store.records()).rows)][before:]

        assert collected == Collected(new=1, reopened=2, known=1)
        assert (operation.verb, operation.who, operation.letter_id) == ("letters.import", "ann", "")
        assert (operation.count, operation.selection) == (4, "lines 1 to 4 of letters.jsonl")
        assert operation.detail == {"refused": 1, "new": 1, "reopened": 2, "resolved": 0, "known": 1, "incidents": 0}
        mended = payload_hash(b"mended")
        assert [(one.letter_id, one.before_sha256, one.after_sha256) for one in records] == [
            ("a", letter("a").payload_sha256, changed.payload_sha256),
            ("b", mended, mended),
            ("c", "", letter("c").payload_sha256),
        ]
        assert [one.detail for one in records] == [
            {"state": ["open", "open"], "generation": 1},
            {"state": ["open", "open"], "generation": 1},
            {"state": [None, "open"], "generation": 0},
        ]
        assert {one.operation_id for one in records} == {act.operation_id}
        assert await bench.store.verify() is None

    async def test_bringing_what_is_known_already_is_recorded_as_just_that(self, bench: Bench) -> None:
        told = [*await bench.dead("a", "b"), *await bench.dead("a", generation=1)]
        await bench.store.collect(told, act=an_act("letters.import"))
        (record,) = (await bench.store.records()).rows

        assert (record.letter_id, record.count) == ("", 3)
        assert record.detail == {"new": 0, "reopened": 0, "resolved": 0, "known": 3, "incidents": 0}

    async def test_bringing_nothing_is_recorded_too(self, bench: Bench) -> None:
        await bench.store.collect([], act=an_act("letters.import", detail={"refused": 7}))
        (record,) = (await bench.store.records()).rows

        assert (record.count, record.detail["refused"], record.detail["new"]) == (0, 7, 0)

    async def test_bringing_letters_twice_in_one_act_is_recorded_once(self, bench: Bench) -> None:
        act = an_act("letters.import")
        await bench.store.collect([letter("a")], act=act)
        await bench.store.collect([letter("a")], act=act)

        assert [one.letter_id for one in (await bench.store.records()).rows] == ["a", ""]

    async def test_what_a_collector_takes_in_is_no_act_of_anybody(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.store.collect([], [an_outcome("a", 1)])

        assert (await bench.store.records()).rows == []

    async def test_an_act_that_changes_nothing_is_recorded_with_its_letters(self, bench: Bench) -> None:
        first, _ = await bench.dead("a", "b")
        edit = Edit(body=b"mended", headers=(), by="ann", edited_at=AT)
        await bench.edit("b", edit)
        before = [await bench.store.get(name) for name in "ab"]
        known = len((await bench.store.records()).rows)
        await bench.store.record(an_act("queues.pause", detail={"queue": "orders"}))
        await bench.store.record(an_act("letters.reveal"), letter_ids=["b", "a", "b", "gone"])
        records = [*reversed((await bench.store.records()).rows)][known:]

        mended = payload_hash(b"mended")
        assert [(one.verb, one.letter_id, one.count, one.before_sha256, one.after_sha256) for one in records] == [
            ("queues.pause", "", 0, "", ""),
            ("letters.reveal", "", 3, "", ""),
            ("letters.reveal", "b", None, mended, mended),
            ("letters.reveal", "a", None, first.payload_sha256, first.payload_sha256),
            ("letters.reveal", "gone", None, "", ""),
        ]
        assert records[0].detail == {"queue": "orders"}
        assert [await bench.store.get(name) for name in "ab"] == before
        assert await bench.store.verify() is None

    async def test_records_come_page_by_page(self, bench: Bench) -> None:
        await bench.dead("a")
        for number in range(3):
            await bench.store.note("a", str(number), act=an_act("letters.note"))
        first = await bench.store.records(limit=4)
        second = await bench.store.records(limit=4, after=first.after)

        assert [[one.seq for one in page.rows] for page in (first, second)] == [[6, 5, 4, 3], [2, 1]]

    async def test_the_chain_holds(self, bench: Bench) -> None:
        assert await bench.store.verify() is None
        await bench.dead("a", "b", "\ud800")
        elsewhere = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
        await bench.store.note("\ud800", "a\x00\udc80", act=an_act("letters.note", at=elsewhere, who="\ud83d"))
        act = an_act("letters.note", detail={"when": AT, "pair": (1, 2)})
        await asyncio.gather(*(bench.store.note(name, "x", act=act) for name in "abab"))

        assert await bench.store.verify() is None
        assert len((await bench.store.records()).rows) == 7
