"""Rows: what is new is handed out together, and settled as it came."""

from redrive.core.outcome import DONE, SettleStatus
from redrive.core.ports import Subscription
from redrive.core.row import InRows, Row
from redrive.testing.conformance.bench import Bench
from redrive.testing.conformance.suite import Suite, needs


class RowsOfMessages(Suite):
    """`InRows` in `Subscription.fetch` and `Subscription.settle`."""

    async def test_new_messages_are_handed_out_in_rows(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2", b"3")
        rows = await taken(bench, worker, 3)

        assert sorted(body for row in rows for body in row.bodies) == [b"1", b"2", b"3"]
        assert [each.message.body for row in rows for each in row.deliveries()] == [
            body for row in rows for body in row.bodies
        ]

    async def test_a_message_that_is_tried_again_is_in_no_row(self, bench: Bench) -> None:
        needs(bench.capabilities.rows, "rows=False")
        worker, delivery = await bench.one_delivery()
        await worker.settle([bench.retry(delivery)])
        fetched = await worker.fetch(1, wait=bench.under_test.patience)

        assert [each.failures for each in fetched] == [1]
        assert not (isinstance(fetched, InRows) and fetched.rows)

    async def test_rows_that_went_well_are_gone(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(*[b"%d" % number for number in range(7)])
        rows = await taken(bench, worker, 7)

        assert list(await worker.settle(InRows(rows))) == [DONE] * 7
        assert await bench.counts() == {}
        again = await worker.settle(InRows(rows))
        assert {answer.status for answer in again} == {SettleStatus.REPEATED}

    async def test_parts_of_rows_are_settled_with_others_beside_them_in_one_call(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(*[b"%d" % number for number in range(7)])
        rows = await taken(bench, worker, 7)
        parts = [part for row in rows for part in (row.first(row.size // 2), row.from_(row.size // 2 + 1)) if part.size]
        first, *others = [row.delivery(row.size // 2) for row in rows]
        answers = await worker.settle(InRows(parts, [bench.give_up(first, worker), *others]))

        assert list(answers) == [DONE] * 7
        assert await bench.counts() == {"dead": 1}

    async def test_of_a_row_that_was_handed_back_in_part_the_rest_is_settled(self, bench: Bench) -> None:
        worker = await bench.worker()
        await bench.publish(b"1", b"2", b"3")
        rows = await taken(bench, worker, 3)
        back = rows[0].delivery(0)
        await worker.release([back])
        answers = await worker.settle(InRows(rows))

        assert [answer.status for answer in answers] == ["lost", "done", "done"]
        assert (await bench.take_one(worker)).message == back.message


async def taken(bench: Bench, worker: Subscription, count: int) -> list[Row]:
    """The rows in which so many new messages come; a skip, if the adapter has none."""
    needs(bench.capabilities.rows, "rows=False")
    rows: list[Row] = []
    while sum(row.size for row in rows) < count:
        fetched = await worker.fetch(count, wait=bench.under_test.patience)
        assert isinstance(fetched, InRows), f"expected rows, got {fetched}"
        assert not fetched.others
        rows += fetched.rows
    return rows
