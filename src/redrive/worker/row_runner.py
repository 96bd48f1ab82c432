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
            hand.deliveries = ()
            hand.run = run = Run(rows[0])
            context = copy_context()
            work = run.through(self._begin, context, until)
            try:
                waiting_for = context.run(work.send, None)
            except StopIteration as end:
                failed: Failed = end.value
                self._finish(rows, run, well=run.begun - (failed is not None))
                hand.run = None
                if failed is not None:
                    error, took = failed
                    self._ended(self._outcomes.failure(run.current, error, took=took))
            else:
                run.end_here()
                hand.deliveries = (run.current,)
                self._finish(rows, run, well=run.begun - 1)
                hand.run = None
                return self._wait(run.current, drive(work, context, waiting_for))
            if time.monotonic() > until:
                return None
        return None

    def _finish(self, rows: deque[Row], run: Run, *, well: int) -> None:
        """Those that have begun leave the rows; so many of them went well."""
        if well:
            self._outcomes.untold += well
            self._ended(run.row.first(well))
        if run.begun < run.row.size:
            rows[0] = run.row.from_(run.begun)
        else:
            rows.popleft()

    async def _wait(self, delivery: Delivery, work: Awaitable[Failed]) -> Ended:
        failed = await work
        if failed is None:
            return self._outcomes.success(delivery)
        error, took = failed
        if isinstance(error, asyncio.CancelledError):
            raise error  # whose it is, the lane knows
        return self._outcomes.failure(delivery, error, took=took)
