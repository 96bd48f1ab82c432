"""What one scope (endpoint, key, model) may do now: slots, gate, minutes, breaker and retry allowance together."""

from datetime import UTC, datetime, timedelta
from typing import Final

from redrive.core.errors import (
    AttemptTimeout,
    BadAnswer,
    GatewayError,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ServerFault,
    TransportFault,
)
from redrive.gateway.allowance import Allowance
from redrive.gateway.breaker import Breaker
from redrive.gateway.concurrency import Concurrency
from redrive.gateway.model import ModelConfig
from redrive.gateway.windows import MinuteWindow, Moment

LATER: Final = datetime.max.replace(tzinfo=UTC)
"""When something else has ended: no clock knows when that will be."""

PAUSE: Final = timedelta(seconds=1)
"""How long nobody is sent after a rate limit that does not say how long."""

_UNKNOWN_KEY: Final = 401
_NOT_THERE: Final = 404
_ABOUT_ALL: Final = {  # statuses that may be about one request, and the codes by which they are about all of them
    403: frozenset({"permission_denied", "permission_error", "unsupported_country_region_territory"}),
    404: frozenset({"model_not_found", "deploymentnotfound"}),
}
_QUARRELS: Final = (408, 409, 425)  # about one request, no sign of an outage
_OVERLOADS: Final = (503, 529)


class Grant:
    """A call that was let through, and what was reserved for it. It is a `probe` until something is heard of it."""

    __slots__ = ("counted", "paid", "probe", "requests", "started_at", "tokens")

    def __init__(self, started_at: datetime, requests: int, tokens: int, *, probe: bool) -> None:
        self.started_at = started_at
        self.requests = requests
        self.tokens = tokens
        self.probe = probe
        self.counted: Moment | None = None  # for its requests
        self.paid: Moment | None = None  # for its tokens


class Limits:
    """The limits of one scope. Every call asks before it starts, and tells how it ended."""

    def __init__(self, config: ModelConfig, *, told_cap: timedelta) -> None:
        self.slots = Concurrency(config.concurrency)
        self.breaker = Breaker()
        self.allowance = Allowance()
        self.heard_at: datetime | None = None  # a word from the provider that was neither a fault nor a refusal
        self._told_cap = told_cap
        self._requests = None if config.requests_per_minute is None else MinuteWindow(config.requests_per_minute)
        self._tokens = None if config.tokens_per_minute is None else MinuteWindow(config.tokens_per_minute)

    def refusal(self, now: datetime) -> GatewayError | None:
        """The error of those that need not be sent: the provider refuses the key or the account."""
        if self.breaker.refusal is None or self.breaker.closed_until(now) is None:
            return None
        return self.breaker.refusal

    def closed_until(self, tokens: int, *, now: datetime) -> datetime | None:
        """None if a request of so many tokens may be sent now; else when to ask again, `LATER` if at the next end."""
        held = self.breaker.closed_until(now) or self.slots.closed(now) or (LATER if self.slots.is_full else None)
        if held is None and self._requests is not None:
            held = self._requests.room_at(1, now=now)
        if held is None and self._tokens is not None:
            held = self._tokens.room_at(tokens, now=now)
        return held

    def has_room(self, requests: int, tokens: int, *, now: datetime) -> bool:
        """Whether so many requests may share one call. A probe goes alone."""
        return not (
            self.breaker.is_open
            or (self._requests is not None and self._requests.room_at(requests, now=now))
            or (self._tokens is not None and self._tokens.room_at(tokens, now=now))
        )

    def start(self, requests: int, tokens: int, *, now: datetime) -> Grant:
        """A call starts."""
        self.slots.in_flight += 1
        grant = Grant(now, requests, tokens, probe=self.breaker.started())
        if self._requests is not None:
            grant.counted = self._requests.reserve(requests, now=now)
        if self._tokens is not None:
            grant.paid = self._tokens.reserve(tokens, now=now)
        return grant

    def end(self, grant: Grant, *, spent: int | None, sent: bool, now: datetime) -> None:
        """A call has ended, which cost so many tokens (None: nobody knows); or was surely not sent."""
        self.slots.in_flight -= 1
        if grant.probe:
            self.breaker.let_go(probe=True, now=now)
        if grant.counted is not None and self._requests is not None and not sent:
            self._requests.correct(grant.counted, -grant.requests)
        if grant.paid is not None and self._tokens is not None and (spent is not None or not sent):
            self._tokens.correct(grant.paid, (spent or 0) - grant.tokens)

    def answered(self, grant: Grant, *, now: datetime) -> bool:
        """A request was answered. True if that closes the breaker."""
        self.slots.succeeded()
        self.allowance.succeeded(now)
        return self._works(grant, now=now)

    def failed(self, grant: Grant, request_id: str, error: GatewayError, *, now: datetime) -> bool:
        """A request was not answered. True if that opens the breaker, or closes it: look at `breaker.why`."""
        pause = error.retry_after or (PAUSE if isinstance(error, RateLimited) else None)
        if isinstance(error, RateLimited | ServerFault) and pause:
            self.slots.close(now + min(pause, self._told_cap), started_at=grant.started_at, now=now)
        elif _is_overload(error):
            self.slots.overloaded(started_at=grant.started_at, now=now)
        if not is_refusal(error) and not is_fault(error):
            return self._works(grant, now=now)
        probe, grant.probe = grant.probe, False
        if is_refusal(error):
            return self.breaker.refused(error, probe=probe, now=now)
        return self.breaker.faulted(request_id, probe=probe, now=now)

    def outlived(self, grant: Grant, request_id: str, *, since: datetime, now: datetime) -> bool:
        """A request was not answered by its deadline. True if that opens the breaker.

        It is a fault if nobody was answered `since` it was made: else it may have waited too long in our own queue.
        """
        if self.heard_at is not None and self.heard_at >= since:
            return False
        return self.failed(grant, request_id, AttemptTimeout("the deadline passed"), now=now)

    def _works(self, grant: Grant, *, now: datetime) -> bool:
        probe, grant.probe = grant.probe, False
        self.heard_at = now
        closed = self.breaker.answered(probe=probe, now=now)
        if closed:
            self.slots.restart()
            self.allowance.refill()
        return closed


def is_fault(error: GatewayError) -> bool:
    """Whether it looks like an outage of the provider, or of the way to it."""
    if isinstance(error, ServerFault):
        return error.status_code not in _QUARRELS
    return isinstance(error, TransportFault | BadAnswer)


def is_refusal(error: GatewayError) -> bool:
    """Whether the provider would refuse every other request to this model with this key as well.

    A 404 without a word is no model's: the address is wrong.
    """
    if not isinstance(error, RequestRejected):
        return isinstance(error, QuotaExhausted)
    status, code = error.status_code, (error.code or "").lower()
    if status == _UNKNOWN_KEY or (status == _NOT_THERE and not code):
        return True
    return code in _ABOUT_ALL.get(status or 0, ())


def _is_overload(error: GatewayError) -> bool:
    return isinstance(error, RateLimited | AttemptTimeout) or error.status_code in _OVERLOADS
