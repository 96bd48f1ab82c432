"""The calls in flight: each is one task, which ends by itself, at its time, or when nobody wants its answers."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from redrive.core.errors import AttemptTimeout, GatewayError, TransportFault
from redrive.gateway.exchange import Exchange, Heard
from redrive.gateway.limits import Grant
from redrive.gateway.patience import Patience
from redrive.gateway.surroundings import Surroundings
from redrive.gateway.ticket import State, Ticket

if TYPE_CHECKING:
    from redrive.gateway.alarms import Alarm

log = logging.getLogger(__name__)


class Call:
    """One call with the requests in it. `left` is how many of them are still wanted."""

    __slots__ = ("alarm", "beat_at", "grant", "left", "task", "tickets", "timed_out")

    def __init__(self, tickets: Sequence[Ticket], grant: Grant) -> None:
        self.tickets = tickets
        self.grant = grant
        self.left = len(tickets)
        self.timed_out = False
        self.alarm: Alarm | None = None
        self.beat_at: datetime | None = None  # when something came of a streamed answer
        self.task: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> list[Ticket]:
        """The requests that are still in it."""
        return [ticket for ticket in self.tickets if ticket.call is self]

    def leave(self, ticket: Ticket) -> None:
        """A request wants its answer no more; without any, the call is broken off, and the server sees that."""
        ticket.call = None
        self.left -= 1
        if not self.left and self.task is not None:
            self.task.cancel()

    def time_out(self) -> None:
        """The time of the attempt is over."""
        self.timed_out = True
        if self.task is not None:
            self.task.cancel()


Ended = Callable[[Call, Sequence[Heard] | GatewayError], None]


class Calls:
    """Starts calls, and tells how each one ended, exactly once, whatever ends its task."""

    def __init__(self, exchange: Exchange, around: Surroundings, *, timeout: timedelta, ended: Ended) -> None:
        self._around = around
        self._timeout = timeout
        self._ended = ended
        self._send = exchange.send
        self._running: set[Call] = set()
        self._patience = Patience(timeout, Call.time_out, alarms=around.alarms)

    def __len__(self) -> int:
        return len(self._running)

    def start(self, tickets: Sequence[Ticket], grant: Grant, *, now: datetime) -> None:
        """Send requests in one call."""
        call = Call(tickets, grant)
        for ticket in tickets:
            ticket.state = State.IN_FLIGHT
            ticket.call = call
            ticket.sent_at = now
            ticket.first_attempt_at = ticket.first_attempt_at or now
        self._running.add(call)
        if tickets[0].channel is None:
            self._patience.begin(call, now=now)
        else:  # has its time anew with each bit that comes
            call.alarm = self._around.alarms.at(now + self._timeout, partial(self._silent, call))
        call.task = asyncio.get_running_loop().create_task(self._carry(call))
        call.task.add_done_callback(partial(self._task_ended, call))

    async def _carry(self, call: Call) -> None:
        """Make a call. How it went is told here, and not a turn of the loop later, in most cases."""
        tickets = call.tickets
        beat = partial(self._beat, call) if tickets[0].channel is not None else _no_beat
        send = self._send if self._around.tracing is None or tickets[0].once else self._send_traced
        self._over(call, await send(tickets, beat))

    async def _send_traced(self, tickets: Sequence[Ticket], beat: Callable[[], None]) -> Sequence[Heard]:
        tracing = self._around.tracing
        assert tracing is not None  # noqa: S101 - asked above
        with tracing.attempt([ticket.delivery() for ticket in tickets]):
            return await self._send(tickets, beat)

    def _task_ended(self, call: Call, task: asyncio.Task[None]) -> None:
        if call in self._running:
            self._over(call, _fault(call, task))
        elif not task.cancelled() and (error := task.exception()) is not None:
            log.error("what a call of the gateway ended in could not be told", exc_info=error)

    def _over(self, call: Call, outcome: Sequence[Heard] | GatewayError) -> None:
        self._patience.end(call)
        self._around.alarms.call_off(call.alarm)
        self._running.discard(call)
        call.task = None  # which may have an error that knows this call
        self._ended(call, outcome)

    def _beat(self, call: Call) -> None:
        call.beat_at = self._around.clock.now()

    def _silent(self, call: Call) -> None:
        """The time of an attempt is over, unless something has come of its answer."""
        until = None if call.beat_at is None else call.beat_at + self._timeout
        if until is not None and until > self._around.clock.now():
            call.alarm = self._around.alarms.at(until, partial(self._silent, call))
        else:
            call.time_out()

    async def aclose(self) -> None:
        """Break off what is running, and wait until it has ended."""
        while self._running:
            tasks = [call.task for call in self._running if call.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await asyncio.sleep(0)  # how they ended is told in callbacks


def _no_beat() -> None:
    """Nobody counts the bits of an answer that comes whole."""


def _fault(call: Call, task: asyncio.Task[None]) -> GatewayError:
    """What a task stands for that has ended without an answer."""
    if task.cancelled():
        if call.timed_out:
            return AttemptTimeout("the answer did not arrive in time", possibly_executed=True)
        return TransportFault("the call was broken off", possibly_executed=True)
    error = task.exception()
    if isinstance(error, GatewayError):
        return error
    log.error("a call of the gateway failed in an unknown way", exc_info=error)
    fault = TransportFault(f"the call failed in an unknown way: {type(error).__name__}", possibly_executed=True)
    fault.__cause__ = error
    return fault
