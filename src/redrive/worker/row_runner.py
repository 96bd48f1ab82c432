"""Running an async handler over rows of new messages: what nothing happens to is never a delivery of its own."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import copy_context

from redrive.core.delivery import Delivery
from redrive.core.row import Row
from redrive.worker.current import Hand
from redrive.worker.driving import drive
from redrive.worker.outcomes import Ended, Outcomes
from redrive.worker.run import ByBody, Failed, Run


class RowRunner:
    """Runs an `async def` handler that asks for nothing but the payload, where success is an Ack and nothing else."""

    def __init__(self, begin: ByBody, *, outcomes: Outcomes, ended: Callable[[Ended], None]) -> None:
        self._begin = begin
        self._outcomes = outcomes
        self._ended = ended

    def run(self, rows: deque[Row], hand: Hand, until: float) -> Awaitable[Ended] | None:
        """Take messages from the rows and run the handler on each, for as long as none has to wait.

        Returns what to await for one that has to; None when the rows are at their end or the time (monotonic) is over.
        """
        while rows:
            row = rows[0]
            hand.deliveries, hand.run = (), Run(row)
            rows.popleft()  # what it may go through is in hand all the time, in one place or the other
            run, context = hand.run, copy_context()
            work = run.through(self._begin, context, until)
            try:
                waiting_for = context.run(work.send, None)
            except StopIteration as end:
                failed: Failed = end.value
                apart = self._share_out(row, run, rows, hand, with_one_apart=failed is not None)
                if failed is not None and apart is not None:
                    error, took = failed
                    self._ended(self._outcomes.failure(apart, error, took=took))
            else:
                self._share_out(row, run, rows, hand, with_one_apart=True)
                run.end_here()
                return self._wait(run.current, drive(work, context, waiting_for))
            if time.monotonic() > until:
                return None
        return None

    def _share_out(self, row: Row, run: Run, rows: deque[Row], hand: Hand, *, with_one_apart: bool) -> Delivery | None:
        """Where the messages of a run go from there: those that went well are to be settled, the others wait again.

        The one apart, whose handler was the last that began, is in hand from now on; it is returned.
        """
        well, apart = run.begun, None
        if with_one_apart:
            well, apart = well - 1, run.current
            hand.deliveries = (apart,)
        if well:
            self._outcomes.untold += well
            self._ended(row.first(well))
        if run.begun < row.size:
            rows.appendleft(row.from_(run.begun))
        hand.run = None
        return apart

    async def _wait(self, delivery: Delivery, work: Awaitable[Failed]) -> Ended:
        failed = await work
        if failed is None:
            return self._outcomes.success(delivery)
        error, took = failed
        if isinstance(error, asyncio.CancelledError):
            raise error  # whose it is, the lane knows
        return self._outcomes.failure(delivery, error, took=took)
