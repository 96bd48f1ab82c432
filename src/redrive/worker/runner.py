"""Running handlers: async ones without a task each, sync ones in threads, batches with halving."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Executor
from contextvars import copy_context
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

from redrive.core.delivery import Delivery
from redrive.core.outcome import ACK
from redrive.core.ports import Clock
from redrive.worker.current import IN_THREAD, Hand
from redrive.worker.driving import drive
from redrive.worker.outcomes import Ended, Outcomes
from redrive.worker.payload import Signature
from redrive.worker.row_runner import RowRunner
from redrive.worker.traced import spans, traced, traced_call

T = TypeVar("T")

# Where fields stand in a Delivery and a Message: read by place, at a third of the cost, for every message.
MESSAGE: Final = 0
CRASHES: Final = 4
LETTER_ID: Final = 6
EXPIRES_AT: Final = 6


class Runner(Protocol):
    """Runs a handler on one delivery after another."""

    cancellable: bool
    by_row: RowRunner | None

    def run(self, buffer: deque[Delivery], hand: Hand, until: float) -> Awaitable[Ended] | None:
        """Take deliveries from the buffer and run the handler on each, for as long as none has to wait.

        Returns what to await for one that has to; None when the buffer is empty or the time (monotonic) is over.
        """
        ...


class AsyncRunner:
    """Runs `async def` handlers by driving the coroutine itself: a fresh context each, no task each."""

    cancellable = True

    def __init__(
        self,
        handler: Callable[..., Coroutine[Any, Any, Any]],
        *,
        signature: Signature,
        outcomes: Outcomes,
        deadline: "Deadline",
        ended: Callable[[Ended], None],
    ) -> None:
        self._begin = traced(outcomes.tracing, deadline.noted(signature.call(handler)))
        self._outcomes = outcomes
        self._ended = ended
        by_body = signature.by_body(handler) if outcomes.minds_failures_only else None
        self.by_row = None if by_body is None else RowRunner(by_body, outcomes=outcomes, ended=ended)

    def run(self, buffer: deque[Delivery], hand: Hand, until: float) -> Awaitable[Ended] | None:
        """The loop that every message goes through: what most messages do not need is not called for them."""
        begin, ended, outcomes, clock = self._begin, self._ended, self._outcomes, time.monotonic
        plain, always_ask = outcomes.plain, outcomes.has_budget
        while buffer:
            began = clock()
            if began > until:
                return None
            delivery = buffer.popleft()
            hand.deliveries = (delivery,)  # before it starts: it may block the loop, and must keep its lease
            if always_ask or delivery[CRASHES] or delivery[MESSAGE][EXPIRES_AT] is not None:
                refused = outcomes.before(delivery)
                if refused is not None:
                    ended(refused)
                    continue
            try:
                work = begin(delivery)
            except Exception as error:  # noqa: BLE001 - a type of the user's own may raise anything when it is made
                ended(outcomes.failure(delivery, error, took=0.0))
                continue
            context = copy_context()
            try:
                waiting_for = context.run(work.send, None)
            except StopIteration as end:
                if plain and delivery[LETTER_ID] is None:
                    outcomes.untold += 1
                    ended(delivery)
                else:
                    ended(outcomes.success(delivery, end.value))
            except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
                ended(outcomes.failure(delivery, error, took=clock() - began))
            else:
                return self._wait(delivery, drive(work, context, waiting_for), began)
        return None

    async def _wait(self, delivery: Delivery, work: Awaitable[Any], began: float) -> Ended:
        try:
            result = await work
        except asyncio.CancelledError:
            raise  # whose it is, the lane knows
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            return self._outcomes.failure(delivery, error, took=time.monotonic() - began)
        return self._outcomes.success(delivery, result, took=time.monotonic() - began)


class ThreadRunner:
    """Runs plain `def` handlers in threads. A thread cannot be ended: over its time limit it keeps its lane."""

    cancellable = False
    by_row: RowRunner | None = None

    def __init__(
        self,
        handler: Callable[..., Any],
        *,
        signature: Signature,
        outcomes: Outcomes,
        deadline: "Deadline",
        ended: Callable[[Ended], None],
        threads: Executor,
    ) -> None:
        self._ended = ended
        self._handler = handler
        self._arguments = deadline.noted(signature.arguments)
        self._attempt = traced_call(outcomes.tracing, self._call)
        self._outcomes = outcomes
        self._threads = threads

    def run(self, buffer: deque[Delivery], hand: Hand, until: float) -> Awaitable[Ended] | None:  # noqa: ARG002
        """Hand the handler to a thread, for the first delivery that may start."""
        while buffer:
            delivery = buffer.popleft()
            hand.deliveries = (delivery,)
            refused = self._outcomes.before(delivery)
            if refused is None:
                return self._wait(delivery, time.monotonic())
            self._ended(refused)
        return None

    async def _wait(self, delivery: Delivery, began: float) -> Ended:
        loop = asyncio.get_running_loop()
        context = copy_context()
        try:
            result = await loop.run_in_executor(self._threads, context.run, self._attempt, delivery)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            return self._outcomes.failure(delivery, error, took=time.monotonic() - began)
        return self._outcomes.success(delivery, result, took=time.monotonic() - began)

    def _call(self, delivery: Delivery) -> Any:
        IN_THREAD.set(delivery)
        return call_in_thread(self._handler, *self._arguments(delivery))


def call_in_thread(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Call a plain function so that a future can carry what it raises."""
    try:
        return handler(*arguments)
    except StopIteration as error:
        raise RuntimeError("the handler raised StopIteration") from error


class BatchRunner:
    """Runs a batch handler. An exception from a batch of more than one spends no attempt: it is halved and run again.

    The handler returns None (all done) or one outcome per item: None, ACK, RetryLater(…), GiveUp(…), or any other
    exception, as `asyncio.gather(…, return_exceptions=True)` gives them. One in a thread is not `cancellable`.
    """

    def __init__(
        self,
        call: Callable[[list[list[Any]]], Awaitable[Any]],
        *,
        signature: Signature,
        outcomes: Outcomes,
        cancellable: bool,
    ) -> None:
        self.cancellable = cancellable
        self._call = call
        self._span = spans(outcomes.tracing)
        self._signature = signature
        self._outcomes = outcomes

    async def start(self, deliveries: Sequence[Delivery]) -> list[Ended]:
        """Run the handler on all that can start; the others get their end at once."""
        ended: list[Ended] = []
        items: list[tuple[Delivery, list[Any]]] = []
        always_ask, arguments = self._outcomes.has_budget, self._signature.arguments
        for delivery in deliveries:
            if always_ask or delivery[CRASHES] or delivery[MESSAGE][EXPIRES_AT] is not None:
                refused = self._outcomes.before(delivery)
                if refused is not None:
                    ended.append(refused)
                    continue
            try:
                items.append((delivery, arguments(delivery)))
            except Exception as error:  # noqa: BLE001 - a type of the user's own may raise anything when it is made
                ended.append(self._outcomes.failure(delivery, error, took=0.0))
        return [*ended, *await self._halving(items)] if items else ended

    async def _halving(self, items: list[tuple[Delivery, list[Any]]]) -> list[Ended]:
        began = time.monotonic()
        columns = [list(column) for column in zip(*(arguments for _, arguments in items), strict=True)]
        try:
            with self._span([delivery for delivery, _ in items]):
                answers = await self._call(columns)
            if answers is not None and len(answers) != len(items):
                raise TypeError(f"expected one outcome for each of {len(items)} items, got {len(answers)}")  # noqa: TRY301
        except asyncio.CancelledError:
            raise  # whose it is, the lane knows, which halves the batch too
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            took = time.monotonic() - began
            if len(items) == 1:
                return [self._outcomes.failure(items[0][0], error, took=took)]
            middle = len(items) // 2
            return [*await self._halving(items[:middle]), *await self._halving(items[middle:])]
        took = time.monotonic() - began
        if answers is None and self._outcomes.plain and not any(delivery[LETTER_ID] for delivery, _ in items):
            self._outcomes.untold += len(items)
            return [delivery for delivery, _ in items]
        given = answers if answers is not None else [None] * len(items)
        return [self._end(delivery, answer, took) for (delivery, _), answer in zip(items, given, strict=True)]

    def _end(self, delivery: Delivery, answer: object, took: float) -> Ended:
        if isinstance(answer, BaseException):
            return self._outcomes.failure(delivery, answer, took=took)
        return self._outcomes.success(delivery, None if answer is ACK else answer, took=took)


class Deadline:
    """Tells a handler that asks for its `Delivery` when its attempt must be over."""

    def __init__(self, clock: Clock, limit: timedelta | None, *, wanted: bool) -> None:
        self._clock = clock
        self._limit = limit if wanted else None

    def noted(self, function: Callable[[Delivery], T]) -> Callable[[Delivery], T]:
        """A function of a delivery, told of the deadline if the handler asked for it and there is one."""
        limit = self._limit
        if limit is None:
            return function
        return lambda delivery: function(delivery._replace(deadline=self._clock.now() + limit))
