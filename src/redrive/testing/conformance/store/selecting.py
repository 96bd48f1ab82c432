"""Selections: the letters that a preview shows and a redrive freezes."""

import pytest

from redrive.core.errors import LetterNotFound
from redrive.core.query import Query
from redrive.core.stored import Edit
from redrive.testing.conformance.store.bench import AT, DISCARDED, OPEN, Bench, Suite, an_act, letter

OPEN_ONES = Query(states=(OPEN,))


class Selecting(Suite):
    """`select` up to a cursor of the news, and `select_named`."""

    async def test_what_came_or_reopened_behind_a_cursor_is_left_out(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c", "d")
        await bench.store.discard({"b": 1}, act=an_act("letters.discard"))
        shown, mark = await self._shown(bench)
        await bench.store.collect([letter("b", generation=1), letter("e")])

        assert shown == ["a", "c", "d"]
        assert [row.letter_id for row in await bench.store.select(OPEN_ONES, limit=9)] == ["a", "b", "c", "d", "e"]
        for query in (OPEN_ONES, Query(states=(OPEN,), queue="orders"), Query(from_at=AT, states=(OPEN,))):
            assert [row.letter_id for row in await bench.store.select(query, limit=9, upto=mark)] == shown
            assert [row.letter_id for row in await bench.store.select(query, limit=2, upto=mark)] == shown[:2]

    async def test_what_people_decide_does_not_take_a_letter_behind_a_cursor(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")
        _, mark = await self._shown(bench)
        await bench.store.discard({"a": 1}, act=an_act("letters.discard"))
        await bench.store.note("b", "look", act=an_act("letters.note"))

        found = await bench.store.select(Query(), limit=9, upto=mark)
        assert [(row.letter_id, row.life.version) for row in found] == [("a", 2), ("b", 1), ("c", 1)]

    @pytest.mark.parametrize("cursor", ["x", "", "-1", "9" * 30])
    async def test_a_cursor_to_select_up_to_that_is_none_is_refused(self, bench: Bench, cursor: str) -> None:
        with pytest.raises(ValueError, match="after"):
            await bench.store.select(Query(), limit=1, upto=cursor)

    async def test_letters_are_selected_by_name_in_the_order_asked(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")
        await bench.dead("lone\ud800\x00", queue="mail", app_version="v2")
        await bench.store.discard({"b": 1}, act=an_act("letters.discard"))
        found = await bench.store.select_named(["c", "lone\ud800\x00", "b", "c"])
        every = {row.letter_id: row for row in await bench.store.select(Query(), limit=9)}

        assert found == [every[name] for name in ("c", "lone\ud800\x00", "b")]
        assert found[2].life.state is DISCARDED
        assert [*await bench.store.select_named([])] == []

    async def test_of_a_letter_that_is_named_it_is_known_whether_it_can_be_sent(self, bench: Bench) -> None:
        await bench.dead("a", "empty", payload=b"")
        await bench.dead("digest", "edited", payload=None)
        await bench.edit("edited", Edit(body=b"mended", headers=(), by="ann", edited_at=AT))
        found = await bench.store.select_named(["a", "empty", "digest", "edited"])

        assert [row.sendable for row in found] == [True, True, False, True]

    async def test_the_first_of_those_named_that_is_not_there_is_said(self, bench: Bench) -> None:
        await bench.dead("a")

        with pytest.raises(LetterNotFound, match="'y'"):
            await bench.store.select_named(["a", "y", "x"])

    async def _shown(self, bench: Bench) -> tuple[list[str], str | None]:
        mark = (await bench.store.news(after=None)).after
        return [row.letter_id for row in await bench.store.select(OPEN_ONES, limit=9, upto=mark)], mark
