"""Finding letters: the same ones as `Query.matches`, in pages."""

from datetime import timedelta
from typing import Any

import pytest

from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.testing.conformance.store.bench import (
    AT,
    DISCARDED,
    OPEN,
    PARKED,
    RESOLVED,
    Bench,
    Suite,
    an_act,
    an_outcome,
    letter,
)

REASON = Reason.ATTEMPTS_EXHAUSTED


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
            assert await bench.names(Query(states=(state,))) == [name]
            assert await bench.names(Query(states=(state,), queue="orders")) == [name]
        assert await bench.names(Query(states=(LetterState.PARKED,))) == []
        assert await bench.names(Query(queue="orders")) == ["c", "b", "a"]

    @pytest.mark.parametrize(
        "more", [{}, {"queue": "orders"}, {"user_id": "u1"}, {"reason": REASON}, {"text": "order"}], ids=str
    )
    async def test_several_states_are_asked_for(self, bench: Bench, more: dict[str, Any]) -> None:
        await bench.dead("a", "b", "c", "d", user_id="u1")
        await bench.dead("b", generation=5, user_id="u1")
        await bench.store.collect([], [an_outcome("c", 1)])
        await bench.store.discard({"d": 1}, act=an_act("letters.discard"))

        for states, names in (((OPEN, PARKED), ["b", "a"]), ((DISCARDED, OPEN, RESOLVED), ["d", "c", "a"])):
            query = Query(states=states, **more)
            assert await bench.names(query) == names
            assert await bench.names(query, limit=1) == names
            assert [row.letter_id for row in await bench.store.select(query, limit=2)] == names[::-1][:2]
            assert (await bench.store.count(query)).number == len(names)

    async def test_the_entry_of_a_dlq_is_asked_for(self, bench: Bench) -> None:
        await bench.dead("a", "b", dlq_entry_id="7-0")
        await bench.dead("c", dlq_entry_id="7-0", queue="mail")
        await bench.dead("d", dlq_entry_id="8-0")
        await bench.store.discard({"b": 1}, act=an_act("letters.discard"))

        assert await bench.names(Query(dlq_entry_id="7-0"), limit=2) == ["c", "b", "a"]
        assert await bench.names(Query(dlq_entry_id="7-0", queue="orders")) == ["b", "a"]
        assert await bench.names(Query(dlq_entry_id="7-0", states=(OPEN, PARKED))) == ["c", "a"]
        assert await bench.names(Query(dlq_entry_id="7-0", text="m-a")) == ["a"]
        assert await bench.names(Query(dlq_entry_id="7")) == []
        assert [row.letter_id for row in await bench.store.select(Query(dlq_entry_id="7-0"), limit=2)] == ["a", "b"]
        assert (await bench.store.count(Query(dlq_entry_id="7-0"))).number == 3

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
