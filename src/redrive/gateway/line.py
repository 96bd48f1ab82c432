"""The line of one model: its queue, its calls, and what becomes of each request in between."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from redrive.core.duration import NOW
from redrive.core.errors import GatewayClosed, GatewayError, RateLimited, RequestRejected, TransportFault
from redrive.core.outcome import RetryLater
from redrive.core.policy import RetryPolicy, decide
from redrive.core.reason import Reason
from redrive.gateway.account import HELD, Account
from redrive.gateway.calls import Call, Calls
from redrive.gateway.endings import expired, given_up, own_copy, response_of, too_late
from redrive.gateway.exchange import Exchange, Heard
from redrive.gateway.letters import LetterWriter
from redrive.gateway.limits import LATER, Limits, is_fault
from redrive.gateway.model import ModelConfig
from redrive.gateway.patience import Patience
from redrive.gateway.queue import FairQueue
from redrive.gateway.request import LLMRequest, encode
from redrive.gateway.room import Room
from redrive.gateway.router import ResponseRouter
from redrive.gateway.send_window import SendWindow
from redrive.gateway.surroundings import Surroundings
from redrive.gateway.ticket import Ask, State, Ticket, milliseconds
from redrive.gateway.tokens import tokens_of
from redrive.gateway.wire import Answer

if TYPE_CHECKING:
    from redrive.gateway.alarms import Alarm


class Desks(NamedTuple):
    """Whom a line works with."""

    router: ResponseRouter
    account: Account
    exchange: Exchange
    letters: LetterWriter | None


class Line:
    """Moves requests of one model from the queue into calls, and from there to their end. Belongs to one event loop.

    A request that nothing holds back is sent when it is accepted; all others by `pump`, which is called whenever
    something may have changed. Every request that is accepted reaches `State.DONE`, exactly once: by its answer, an
    error, its deadline, its caller's leaving, or the end of the gateway.
    """

    def __init__(self, config: ModelConfig, policy: RetryPolicy, *, desks: Desks, around: Surroundings) -> None:
        self.config = config
        self.limits = Limits(config, told_cap=policy.told_cap)
        self.room = Room(config.queue_size)
        self.tickets: dict[str, Ticket] = {}
        self._policy = policy
        self._once = replace(policy, max_retries=0)
        self._desks = desks
        self._around = around
        self._queue = FairQueue()
        self._calls = Calls(desks.exchange, around, timeout=config.attempt_timeout, ended=self._call_ended)
        self._held: deque[Ticket] = deque()  # due, but beyond the retry allowance
        self._look: Alarm | None = None
        self._window = SendWindow(config.batch_size, config.batch_wait)
        self._patience = Patience(config.deadline or NOW, self._expire, alarms=around.alarms)
        self._closed = False

    def asked(self, request: LLMRequest, *, stream: bool = False) -> Ask:
        """The request as it will be sent. Raises `RequestRejected` for one that can never be."""
        body = self._desks.exchange.body(request, stream=stream)
        if request.metadata:
            encode(request.metadata)  # which is not sent, but is to be in a letter
        most = self.config.tokens_per_minute
        if most is None:
            return Ask(request, body)
        tokens = tokens_of(request, body)
        if tokens > most:
            raise RequestRejected(f"est_tokens: expected at most {most}, which is all of a minute, got {tokens}")
        return Ask(request, body, tokens)

    def accept(self, ticket: Ticket, *, now: datetime, held: bool = False) -> None:
        """Take a request in. Its deadline begins to count when it was made, not now. `held` by the retry allowance."""
        self.tickets[ticket.request_id] = ticket
        if ticket.deadline_at is not None:
            self._set_deadline(ticket, ticket.deadline_at, now)
        if self._ended_by_gate(ticket, now):
            return
        if held:
            self._hold(ticket, now)
            return
        if self.config.batch_size == 1 and not self._queue and self.limits.closed_until(ticket.tokens, now=now) is None:
            self._start([ticket], now)  # nobody waits, and nothing holds it back
            return
        self._queue.put(ticket)
        self.pump(now)

    def abandon(self, request_id: str) -> None:
        """Nobody waits for this request any more: it leaves the queue, or its call, at once."""
        ticket = self.tickets.get(request_id)
        if ticket is None or ticket.state in (State.ENDING, State.DONE):
            return
        self._desks.account.cancelled(ticket, now=self._around.clock.now())
        self._done(ticket)
        self.pump()

    def withdraw(self, request_id: str) -> None:
        """End a request that is not in flight, as if the gateway were closed: it is not to be sent any more."""
        ticket = self.tickets.get(request_id)
        if ticket is not None and ticket.state in (State.QUEUED, State.WAITING):
            error = GatewayClosed("the request was withdrawn before it could be sent")
            error.possibly_executed = ticket.possibly_executed
            self._resolve(ticket, error, reason="closed", now=self._around.clock.now())

    def pump(self, now: datetime | None = None) -> None:
        """Start what may start."""
        if self._closed:
            return
        now = now or self._around.clock.now()
        self._free_held(now)
        while self._queue:
            ticket = self._queue.head()
            if not self._desks.router.is_wanted(ticket.request_id):
                self._forget_head(ticket, now)
                continue
            refusal = self.limits.refusal(now)
            if refusal is not None:
                error = own_copy(refusal)
                error.possibly_executed = ticket.possibly_executed  # which another request's says nothing about
                self._end(ticket, error, reason=Reason.REJECTED)
                continue
            again_at = self._window.closed_until(len(self._queue), now=now) or self.limits.closed_until(
                ticket.tokens, now=now
            )
            if again_at is not None:
                self._look_again(again_at)
                return
            self._start(self._take(now), now)
        self._window.emptied()

    def stop(self) -> None:
        """End every request that is left, but for those whose letter is being written. Idempotent."""
        self._closed = True
        now = self._around.clock.now()
        for ticket in [*self.tickets.values()]:
            if ticket.state is not State.ENDING:
                error = GatewayClosed("the gateway was closed before the answer was there")
                error.possibly_executed = ticket.possibly_executed or ticket.state is State.IN_FLIGHT
                self._resolve(ticket, error, reason="closed", now=now)

    async def settle(self) -> None:
        """After `stop`: wait until no call and no letter is under way."""
        await self._calls.aclose()
        if self._desks.letters is not None:
            await self._desks.letters.settle()
        self._around.alarms.call_off(self._look)
        self._desks.account.tell()

    # ------------------------------------------------------------------------------- what starts

    def _set_deadline(self, ticket: Ticket, deadline_at: datetime, now: datetime) -> None:
        """Most have the deadline of the model, and begin it in the order in which they are accepted."""
        if ticket.request.deadline is None and ticket.accepted_at == now:
            self._patience.begin(ticket, now=now)
        else:
            ticket.deadline_alarm = self._around.alarms.at(deadline_at, partial(self._expire, ticket))

    def _start(self, together: Sequence[Ticket], now: datetime) -> None:
        """Send requests in one call."""
        tokens = together[0].tokens if len(together) == 1 else sum(one.tokens for one in together)
        self._calls.start(together, self.limits.start(len(together), tokens, now=now), now=now)

    def _take(self, now: datetime) -> Sequence[Ticket]:
        """The next request; with an endpoint for many, as many more as are in the window and within the limits."""
        together = [self._queue.take()]
        tokens = together[0].tokens
        if self.config.batch_path is not None and together[0].channel is None:
            while self._queue and len(together) < self._window.left:
                ticket = self._queue.head()
                tokens += ticket.tokens
                if ticket.channel is not None or not self.limits.has_room(len(together) + 1, tokens, now=now):
                    break
                together.append(self._queue.take())
        self._window.sent(len(together))
        return together

    def _forget_head(self, ticket: Ticket, now: datetime) -> None:
        """The request whose turn it is was left by its caller in this very moment."""
        self._desks.account.cancelled(ticket, now=now)
        self._done(ticket)

    def _look_again(self, at: datetime) -> None:
        if at >= LATER or (self._look is not None and self._look.act is not None and self._look.due_at <= at):
            return
        self._around.alarms.call_off(self._look)
        self._look = self._around.alarms.at(at, self.pump)

    def _hold(self, ticket: Ticket, now: datetime) -> None:
        """A retry is due, and goes on as soon as the allowance has one for it."""
        ticket.state = State.WAITING
        self._held.append(ticket)
        self.pump(now)

    def _free_held(self, now: datetime) -> None:
        """Let retries go on that waited for the allowance, as many as it has."""
        while self._held:
            ticket = self._held[0]
            if ticket.state is State.WAITING:
                again_at = self.limits.allowance.take(now)
                if again_at is not None:
                    self._look_again(again_at)
                    return
                self._requeue(ticket, now)
            self._held.popleft()

    def _requeue(self, ticket: Ticket, now: datetime) -> None:
        ticket.state = State.QUEUED
        ticket.ready_at = now
        self._queue.put(ticket)

    # ------------------------------------------------------------------------------- what has ended

    def _call_ended(self, call: Call, outcome: Sequence[Heard] | GatewayError) -> None:
        """A call is over: once for its slot, and for each request in it."""
        now = self._around.clock.now()
        limits = self.limits
        moved, closed_before = False, limits.slots.closed(now)
        if isinstance(outcome, GatewayError):
            if wanted := call.wanted:  # else it was broken off by us, and says nothing about the provider
                moved = limits.failed(call.grant, wanted[0].request_id, outcome, now=now)
            heard: Sequence[Heard] = [(own_copy(outcome), "") for _ in call.tickets]
            spent = None if outcome.possibly_executed else 0
        else:
            heard = outcome
            spent = self._spent(heard)
            for ticket, (result, _) in zip(call.tickets, heard, strict=True):
                if isinstance(result, GatewayError):
                    moved = limits.failed(call.grant, ticket.request_id, result, now=now) or moved
                else:
                    moved = limits.answered(call.grant, now=now) or moved
        sent = not (isinstance(outcome, TransportFault) and not outcome.possibly_executed)
        limits.end(call.grant, spent=spent, sent=sent, now=now)
        if moved:
            self._desks.account.breaker_moved(limits.breaker.why, now=now)
        if limits.slots.closed(now) != closed_before:
            self._end_hopeless(now)
        for ticket, (result, provider_request_id) in zip(call.tickets, heard, strict=True):
            if ticket.call is call:
                ticket.call = None
                self._judge(ticket, result, provider_request_id, now=now)
        self.pump(now)

    @staticmethod
    def _spent(heard: Sequence[Heard]) -> int | None:
        """The tokens that a call has cost, if all who know have told."""
        costs = [result.usage for result, _ in heard if isinstance(result, Answer)]
        return None if None in costs else sum(usage.total for usage in costs if usage is not None)

    def _end_hopeless(self, now: datetime) -> None:
        """The gate has been closed for long: end those at once that it would let through after their deadline."""
        until = self.limits.slots.closed(now)
        if until is not None and until - now > self.config.postpone_after:
            for ticket in [*self.tickets.values()]:
                self._ended_by_gate(ticket, now)

    def _ended_by_gate(self, ticket: Ticket, now: datetime) -> bool:
        """Whether a queued request has no time left until the gate opens, and has been ended for it."""
        until = self.limits.slots.closed(now)
        if until is None or ticket.deadline_at is None or ticket.state is not State.QUEUED:
            return False
        if ticket.deadline_at > until:
            return False
        told = RateLimited("the gate is closed after a rate limit", retry_after=until - now)
        told.possibly_executed = ticket.possibly_executed
        self._end(ticket, too_late(told, until, ticket), reason=Reason.DEADLINE)
        return True

    def _judge(self, ticket: Ticket, result: Answer | GatewayError, provider_request_id: str, *, now: datetime) -> None:
        if isinstance(result, GatewayError):
            self._failed(ticket, result, now=now)
            return
        response = response_of(ticket, result, provider_request_id, now=now)
        self._done(ticket)
        if self._desks.router.resolve(ticket.request_id, response):
            self._desks.account.answered(ticket, response, now=now)
        else:
            self._desks.account.cancelled(ticket, now=now)

    def _failed(self, ticket: Ticket, error: GatewayError, *, now: datetime) -> None:
        """An attempt failed: ask the policy what becomes of the request."""
        if ticket.channel is not None:
            error = ticket.channel.interrupted(error)
        error.request_id, error.model = ticket.request_id, ticket.request.model
        ticket.possibly_executed = error.possibly_executed = ticket.possibly_executed or error.possibly_executed
        if self.limits.breaker.is_open and self.limits.breaker.refusal is None and is_fault(error):
            ticket.delay_ms = 0.0
            why = self.limits.breaker.why or ""
            self._desks.account.retried(ticket, error, status=HELD, why=why, now=now)
            self._requeue(ticket, now)  # an outage costs time, and no attempt
            return
        policy = self._once if ticket.once else self._policy
        decision = decide(policy, error, delivery=ticket.delivery(), now=now, random=self._around.random)
        ticket.remember(error, now=now)
        outcome = decision.outcome
        if not isinstance(outcome, RetryLater):
            self._end(ticket, given_up(error, outcome.reason, ticket), reason=outcome.reason, failure=error)
            return
        delay = outcome.delay or timedelta(0)
        if ticket.deadline_at is not None and now + delay >= ticket.deadline_at:
            late = too_late(error, now + delay, ticket)
            self._end(ticket, late, reason=Reason.DEADLINE, failure=error)
            return
        ticket.state = State.WAITING
        ticket.delay_ms = milliseconds(delay)
        limited = isinstance(error, RateLimited)
        ticket.due_alarm = self._around.alarms.at(now + delay, partial(self._due, ticket, limited=limited))
        postponed = error.retry_after is not None and error.retry_after > self.config.postpone_after
        status = "postponed" if postponed else "retry"
        self._desks.account.retried(ticket, error, status=status, why=decision.why, now=now)

    def _due(self, ticket: Ticket, *, limited: bool) -> None:
        """The wait of a retry is over. The allowance is for faults: after a rate limit, the gate watches already."""
        ticket.due_alarm = None
        now = self._around.clock.now()
        if limited:
            self._requeue(ticket, now)
            self.pump(now)
        else:
            self._hold(ticket, now)

    def _expire(self, ticket: Ticket) -> None:
        """The deadline has passed, wherever the request is."""
        if ticket.state in (State.ENDING, State.DONE):
            return
        error = expired(ticket)
        ticket.possibly_executed = error.possibly_executed
        if ticket.call is not None:
            now, grant = self._around.clock.now(), ticket.call.grant
            if self.limits.outlived(grant, ticket.request_id, since=ticket.accepted_at, now=now):
                self._desks.account.breaker_moved(self.limits.breaker.why, now=now)
        self._end(ticket, error, reason=Reason.DEADLINE)
        self.pump()

    # ------------------------------------------------------------------------------- the end

    def _end(self, ticket: Ticket, error: GatewayError, *, reason: Reason, failure: GatewayError | None = None) -> None:
        """A request ends in an error. Unless it was rejected, its letter is written first; `failure` is in it."""
        self._leave(ticket)
        letters = self._desks.letters
        if letters is None or ticket.once or reason is Reason.REJECTED:
            self._resolve(ticket, error, reason=reason.value, now=self._around.clock.now())
            return
        ticket.state = State.ENDING

        def written(letter_id: str | None, refused: str) -> None:
            error.letter_id, error.refused = letter_id, refused
            self._desks.account.counts["letters" if letter_id else "letters_refused"] += 1
            self._resolve(ticket, error, reason=reason.value, now=self._around.clock.now())
            self.pump()

        letters.write(ticket, failure or error, reason=reason, then=written)

    def _resolve(self, ticket: Ticket, error: GatewayError, *, reason: str, now: datetime) -> None:
        error.request_id, error.model = ticket.request_id, ticket.request.model
        self._done(ticket)
        self._desks.router.resolve_error(ticket.request_id, error)
        self._desks.account.failed(ticket, error, reason=reason, now=now)

    def _done(self, ticket: Ticket) -> None:
        """The one way to `State.DONE`: nothing of the request stays behind."""
        self._leave(ticket)
        ticket.state = State.DONE
        del self.tickets[ticket.request_id]
        self.room.release()

    def _leave(self, ticket: Ticket) -> None:
        """Take the request out of wherever it is."""
        alarms = self._around.alarms
        self._patience.end(ticket)
        alarms.call_off(ticket.deadline_alarm)
        alarms.call_off(ticket.due_alarm)
        if ticket.state is State.QUEUED:
            self._queue.remove(ticket)
        if ticket.call is not None:
            ticket.call.leave(ticket)
