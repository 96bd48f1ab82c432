"""Memos, and who has them in hand."""

import asyncio
from datetime import timedelta

from redrive.testing.conformance.store.bench import AT, Bench, Suite

SOON, LATER = AT + timedelta(minutes=1), AT + timedelta(hours=1)


class Memos(Suite):
    """`take_memo` and `write_memo`."""

    async def test_a_memo_is_empty_at_first_and_then_what_was_written_last(self, bench: Bench) -> None:
        body = bytes(range(256)) * 1000
        assert await bench.store.take_memo("alerts", owner="a", now=AT, until=SOON) == b""
        assert await bench.store.write_memo("alerts", b"first", owner="a")
        assert await bench.store.write_memo("alerts", body, owner="a")
        elsewhere = await bench.under_test.reopen()

        assert await elsewhere.take_memo("alerts", owner="a", now=AT, until=SOON) == body
        assert await elsewhere.take_memo("other", owner="b", now=AT, until=SOON) == b""

    async def test_another_one_gets_it_when_its_time_is_up_and_not_before(self, bench: Bench) -> None:
        await bench.store.take_memo("alerts", owner="a", now=AT, until=SOON)
        await bench.store.write_memo("alerts", b"mine", owner="a")
        assert await bench.store.take_memo("alerts", owner="b", now=AT, until=LATER) is None
        assert not await bench.store.write_memo("alerts", b"yours", owner="b")

        assert await bench.store.take_memo("alerts", owner="b", now=SOON, until=LATER) == b"mine"
        assert not await bench.store.write_memo("alerts", b"too late", owner="a")
        assert await bench.store.take_memo("alerts", owner="a", now=SOON, until=LATER) is None

    async def test_it_is_renewed_and_given_up_by_its_owner(self, bench: Bench) -> None:
        await bench.store.take_memo("alerts", owner="a", now=AT, until=SOON)
        await bench.store.take_memo("alerts", owner="a", now=AT, until=LATER)
        assert await bench.store.take_memo("alerts", owner="b", now=SOON, until=LATER) is None

        await bench.store.take_memo("alerts", owner="a", now=SOON, until=SOON)

        assert await bench.store.take_memo("alerts", owner="b", now=SOON, until=LATER) == b""

    async def test_of_many_who_want_it_at_once_one_has_it(self, bench: Bench) -> None:
        elsewhere = await bench.under_test.reopen()
        taken = await asyncio.gather(
            *(
                store.take_memo("alerts", owner=f"{number}", now=AT, until=SOON)
                for number, store in enumerate([bench.store, elsewhere] * 4)
            )
        )

        assert [body for body in taken if body is not None] == [b""]

    async def test_names_and_owners_may_be_anything(self, bench: Bench) -> None:
        assert await bench.store.take_memo("\x00\ud800", owner="\ud800", now=AT, until=SOON) == b""
        assert await bench.store.write_memo("\x00\ud800", b"kept", owner="\ud800")

        assert await bench.store.take_memo("\x00\ud800", owner="\ud800", now=AT, until=SOON) == b"kept"
        assert (await bench.store.records()).rows == []
