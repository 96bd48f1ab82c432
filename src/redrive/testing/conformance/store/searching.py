"""Finding letters: the same ones as `Query.matches`, in pages."""

from datetime import timedelta

import pytest

from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.testing.conformance.store.bench import AT, Bench, Suite, an_act, an_outcome, letter


class Searching(Suite):
    """`find`, `select` and `count`."""

    async def test_the_newest_arrival_comes_first(self, bench: Bench) -> None:
        await bench.dead("b", "a")
        await bench.dead("c", failed_at=AT - timedelta(days=1))

        assert await bench.names() == ["c", "a", "b"]

    async def test_pages_follow_each_other_without_gap_or_repeat(self, bench: Bench) -> None:
        names = [f"l{number}" for number in range(10)]
        await bench.dead(*names)
        first = await bench.store.find(Query(), limit=4)
        await bench.dead("later")
        second = await bench.store.find(Query(), limit=4, after=first.after)
        third = await bench.store.find(Query(), limit=4, after=second.after)

        pages = [[row.letter_id for row in page.rows] for page in (first, second, third)]
        assert pages == [["l9", "l8", "l7", "l6"], ["l5", "l4", "l3", "l2"], ["l1", "l0"]]
        assert third.after is None

    async def test_a_full_last_page_has_no_next_one(self, bench: Bench) -> None:
        await bench.dead("a", "b")

        assert (await bench.store.find(Query(), limit=2)).after is None

    @pytest.mark.parametrize("cursor", ["x", "", "-1", "9" * 30])
    async def test_a_cursor_that_is_none_is_refused(self, bench: Bench, cursor: str) -> None:
        with pytest.raises(ValueError, match="after"):
            await bench.store.find(Query(), after=cursor)

    @pytest.mark.parametrize(
        "query",
        [
            Query(queue="q2"),
            Query(error_type="KeyError"),
            Query(error_code="no_card"),
            Query(reason=Reason.INVALID),
            Query(fingerprint="f2"),
            Query(user_id="u2"),
            Query(tenant_id="t2"),
            Query(kind="llm"),
            Query(broker="kafka"),
            Query(app_version="v2"),
            Query(from_at=AT + timedelta(hours=1)),
            Query(text="Two \N{SNOWMAN}"),
            Query(text="no"),
            Query(queue="q2", user_id="u2", text="two"),
        ],
        ids=str,
    )
    async def test_what_is_asked_for_is_found(self, bench: Bench, query: Query) -> None:
        other = letter(
            "two",
            payload="letter TWO \N{SNOWMAN} no".encode(),
            queue="q2",
            error_type="KeyError",
            error_code="no_card",
            error_message="",
            reason=Reason.INVALID,
            fingerprint="f2",
            user_id="u2",
            tenant_id="t2",
            kind="llm",
            broker="kafka",
            app_version="v2",
            failed_at=AT + timedelta(hours=1),
        )
        await bench.store.collect([letter("one", error_message=""), other, letter("three", error_message="")])
        await bench.store.tend()
        found = await bench.names(query)

        assert found == ["two"]
        assert [row.letter_id for row in await bench.store.select(query, limit=10)] == ["two"]
        assert (await bench.store.count(query)).number == 1

    async def test_a_state_is_asked_for(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")
        await bench.store.collect([], [an_outcome("b", 1)])
        await bench.store.discard({"c": 1}, act=an_act("letters.discard"))

        for name, state in (("a", LetterState.OPEN), ("b", LetterState.RESOLVED), ("c", LetterState.DISCARDED)):
            assert await bench.names(Query(state=state)) == [name]
            assert await bench.names(Query(state=state, queue="orders")) == [name]
        assert await bench.names(Query(state=LetterState.PARKED)) == []
        assert await bench.names(Query(queue="orders")) == ["c", "b", "a"]

    async def test_from_is_included_and_to_is_not(self, bench: Bench) -> None:
        await bench.dead("a")

        assert await bench.names(Query(from_at=AT, to_at=AT + timedelta(microseconds=1))) == ["a"]
        assert await bench.names(Query(to_at=AT)) == []

    @pytest.mark.parametrize("text", ["", "O", "or", "ORDER", 'der": "a"', "valueerror", "m-a", "\N{SNOWMAN}"])
    async def test_text_is_found_whatever_its_length_and_case(self, bench: Bench, text: str) -> None:
        await bench.dead("a", payload='{"Order": "a", "\N{SNOWMAN}": 1}'.encode())

        assert await bench.names(Query(text=text)) == ["a"]
        await bench.store.tend()
        assert await bench.names(Query(text=text)) == ["a"]

    @pytest.mark.parametrize("text", ["%", "a_b", '"', "\x00", "\ud800", "' OR 1=1", "or* NOT", "%%%", "___"])
    async def test_text_is_taken_as_it_is(self, bench: Bench, text: str) -> None:
        await bench.dead("a", payload=b"1", error_message="axb")
        await bench.store.tend()

        assert await bench.names(Query(text=text)) == []

    async def test_text_is_found_anew_after_a_relapse(self, bench: Bench) -> None:
        await bench.dead("a", error_message="the first failure")
        await bench.store.tend()
        await bench.dead("a", generation=1, error_message="quite another")

        assert await bench.names(Query(text="another")) == ["a"]
        assert await bench.names(Query(text="the first")) == []

    async def test_a_selection_is_oldest_first_and_bounded(self, bench: Bench) -> None:
        await bench.dead("a", "b", "c")

        assert [row.letter_id for row in await bench.store.select(Query(), limit=2)] == ["a", "b"]
