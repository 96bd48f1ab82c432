"""What is new: letters as they come and reopen, behind a cursor."""

import asyncio

import pytest

from redrive.core.query import Query
from redrive.core.stored import Edit
from redrive.testing.conformance.store.bench import AT, Bench, Suite, an_act, an_outcome, letter

FAR = AT.replace(year=2031)


class News(Suite):
    """`news`."""

    async def test_at_first_nothing_is_new(self, bench: Bench) -> None:
        await bench.dead("a", "b")
        page = await bench.store.news(after=None)

        assert page.rows == []
        assert await self._news(bench, page.after) == ([], page.after)

    async def test_letters_are_told_of_as_they_come(self, bench: Bench) -> None:
        _, start = await self._news(bench)
        await bench.dead("b", "a")
        await bench.dead("c", failed_at=AT.replace(year=2001))
        names, after = await self._news(bench, start)
        assert names == ["b", "a", "c"]

        await bench.dead("d")
        assert (await self._news(bench, after))[0] == ["d"]
        assert (await self._news(bench, start))[0] == ["b", "a", "c", "d"]

    async def test_a_page_goes_on_where_the_last_one_ended(self, bench: Bench) -> None:
        _, after = await self._news(bench)
        await bench.dead(*"abcde")
        pages = []
        for _ in range(4):
            names, after = await self._news(bench, after, limit=2)
            pages.append(names)

        assert pages == [["a", "b"], ["c", "d"], ["e"], []]

    async def test_a_letter_that_reopens_is_news_again(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c", "d")
        await bench.store.discard({"b": 1}, act=an_act("letters.discard"))
        await bench.plan("c", "d")
        await bench.send()
        _, start = await self._news(bench)
        relapses = [letter("b", generation=1), letter("e"), letter("a", generation=5)]
        await bench.store.collect(relapses, [an_outcome("d", 1, succeeded=False)])
        names, after = await self._news(bench, start)
        assert names == ["b", "e", "a", "d"]

        rows = (await bench.store.news(after=start)).rows
        assert [row.life.state.value for row in rows] == ["open", "open", "parked", "open"]
        await bench.dead("d", generation=1, error_type="KeyError")
        (row,) = (await bench.store.news(after=after)).rows
        assert (row.letter_id, row.error_type) == ("d", "KeyError")

    async def test_a_letter_that_was_news_twice_is_there_once_as_it_is_now(self, bench: Bench) -> None:
        _, start = await self._news(bench)
        await bench.dead("a", "b")
        await bench.dead("a", generation=1, error_type="KeyError")
        page = await bench.store.news(after=start)

        assert [(row.letter_id, row.error_type) for row in page.rows] == [("b", "ValueError"), ("a", "KeyError")]
        assert await bench.names() == ["b", "a"]

    async def test_what_is_known_resolved_or_decided_is_no_news(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c", "d")
        await bench.dead("e", generation=2)
        await bench.plan("d")
        _, start = await self._news(bench)
        await bench.dead("a", "b")
        await bench.dead("e", generation=1)
        await bench.store.collect([], [an_outcome("a", 1)])
        await bench.dead("a", generation=1)
        await bench.store.note("b", "look", act=an_act("letters.note"))
        edit = Edit(body=b"mended", headers=(), by="ann", edited_at=AT)
        await bench.edit("b", edit)
        await bench.store.discard({"c": 1}, act=an_act("letters.discard"))
        await bench.send()

        assert await self._news(bench, start) == ([], start)

    async def test_a_letter_that_comes_resolved_is_news(self, bench: Bench) -> None:
        _, start = await self._news(bench)
        await bench.store.collect([letter("a")], [an_outcome("a", 1)])

        assert (await self._news(bench, start))[0] == ["a"]

    async def test_letters_that_are_gone_are_no_news(self, bench: Bench) -> None:
        _, start = await self._news(bench)
        await bench.dead("a", "b", "c")
        await bench.store.purge(Query(), before=FAR, limit=2, act=an_act("letters.purge"))

        assert (await self._news(bench, start))[0] == ["c"]

    async def test_a_cursor_from_beyond_the_present_is_taken_for_it(self, bench: Bench) -> None:
        await bench.dead("a")
        names, after = await self._news(bench, str(10**15))
        await bench.dead("b")

        assert names == []
        assert (await self._news(bench, after))[0] == ["b"]

    @pytest.mark.parametrize("cursor", ["x", "", "-1", "9" * 30])
    async def test_a_cursor_of_news_that_is_none_is_refused(self, bench: Bench, cursor: str) -> None:
        with pytest.raises(ValueError, match="after"):
            await bench.store.news(after=cursor)

    async def test_a_reader_misses_nothing_while_several_processes_collect(self, bench: Bench) -> None:
        _, after = await self._news(bench)
        stores = [bench.store, await bench.under_test.reopen(), await bench.under_test.reopen()]
        names = [[f"{place}-{number}" for number in range(20)] for place in range(len(stores))]
        done = False

        async def collect(place: int) -> None:
            for name in names[place]:
                await stores[place].collect([letter(name)])

        async def read() -> list[str]:
            nonlocal after
            heard: list[str] = []
            while True:
                ended = done
                more, after = await self._news(bench, after, limit=7)
                heard += more
                if ended and not more:
                    return heard
                await asyncio.sleep(0)  # a store that never waits would let nobody else run

        reading = asyncio.create_task(read())
        await asyncio.gather(*map(collect, range(len(stores))))
        done = True

        assert sorted(await reading) == sorted(name for some in names for name in some)

    async def _news(self, bench: Bench, after: str | None = None, *, limit: int = 100) -> tuple[list[str], str | None]:
        page = await bench.store.news(after=after, limit=limit)
        return [row.letter_id for row in page.rows], page.after
