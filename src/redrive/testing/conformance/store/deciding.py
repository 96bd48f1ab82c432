"""What people do to letters: discard, note, edit."""

import asyncio
from dataclasses import replace

import pytest

from redrive.core.errors import LetterNotFound, StateConflict
from redrive.core.stored import Edit
from redrive.testing.conformance.store.bench import AT, DISCARDED, OPEN, RESOLVED, Bench, Suite, an_act, an_outcome

EDIT = Edit(body=b"\xffmended", headers=(("colour", b"blue"), ("colour", b"\xff")), by="ann", edited_at=AT)


class Deciding(Suite):
    """`discard`, `note` and `edit`."""

    async def test_only_letters_still_as_they_were_seen_are_discarded(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")
        await bench.dead("b", generation=1)
        await bench.store.collect([], [an_outcome("c", 1)])
        asked = {"a": 1, "b": 1, "c": 2, "nobody": 1}

        assert await bench.store.discard(asked, act=an_act("letters.discard")) == ["a"]
        assert [await bench.state(name) for name in "abc"] == [(DISCARDED, 0), (OPEN, 1), (RESOLVED, 1)]

    async def test_many_letters_are_discarded(self, bench: Bench) -> None:
        names = [f"l{number:04}" for number in range(2500)]
        await bench.dead(*names)
        done = await bench.store.discard(dict.fromkeys(names, 1), act=an_act("letters.discard"))

        assert [*done] == names
        assert (await bench.store.stats()).by_state == {"discarded": 2500}
        assert (await bench.store.incident("f1")).open == 0

    async def test_a_note_is_put_on_a_letter_and_replaced(self, bench: Bench) -> None:
        await bench.dead("a")
        for text in ("first", "second"):
            await bench.store.note("a", text, act=an_act("letters.note"))
        stored = await bench.store.get("a")

        assert (stored.note, stored.life.version) == ("second", 1)
        with pytest.raises(LetterNotFound):
            await bench.store.note("nobody", "x", act=an_act("letters.note"))

    async def test_an_edit_is_kept_beside_the_original(self, bench: Bench) -> None:
        (original,) = await bench.dead("a")

        assert [await bench.edit("a", EDIT) for _ in range(2)] == [1, 2]
        stored = await bench.store.get("a")
        assert stored.letter == original
        assert stored.edits == (EDIT, EDIT)

    async def test_an_edit_is_what_is_sent_back(self, bench: Bench) -> None:
        await bench.dead("a", key=b"k")
        await bench.edit("a", EDIT)
        await bench.plan("a")
        (claimed,) = await bench.claim()

        assert (claimed.body, claimed.headers, claimed.key, claimed.edits) == (EDIT.body, EDIT.headers, b"k", 1)

    async def test_a_letter_edited_after_the_preview_is_not_sent(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.plan("a")
        await bench.edit("a", EDIT)

        assert await bench.claim() == []

    async def test_of_two_edits_of_the_same_version_one_is_kept(self, bench: Bench) -> None:
        await bench.dead("a")
        other = replace(EDIT, body=b"other")
        answers = await asyncio.gather(
            *(bench.store.edit("a", edit, version=1, act=an_act("letters.edit")) for edit in (EDIT, other)),
            return_exceptions=True,
        )
        stored = await bench.store.get("a")

        assert sorted(type(answer).__name__ for answer in answers) == ["StateConflict", "int"]
        assert (len(stored.edits), stored.life.version) == (1, 2)
        with pytest.raises(StateConflict, match="has changed"):
            await bench.store.edit("a", EDIT, version=3, act=an_act("letters.edit"))

    async def test_edits_survive_a_relapse(self, bench: Bench) -> None:
        await bench.dead("a")
        await bench.edit("a", EDIT)
        await bench.dead("a", generation=1)

        assert (await bench.store.get("a")).edits == (EDIT,)

    async def test_only_an_open_or_parked_letter_can_be_edited(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        await bench.store.collect([], [an_outcome("a", 1)])
        await bench.dead("b", generation=5)

        with pytest.raises(StateConflict, match="resolved"):
            await bench.edit("a", EDIT)
        assert await bench.edit("b", EDIT) == 1
        with pytest.raises(LetterNotFound):
            await bench.store.edit("nobody", EDIT, version=1, act=an_act("letters.edit"))
