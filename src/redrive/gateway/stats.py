"""How a model's line stands."""

from dataclasses import dataclass
from datetime import datetime

from redrive.gateway.account import Account
from redrive.gateway.line import Line
from redrive.gateway.ticket import State, milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStats:
    """The requests of one model by where they are, its limits now, and what has become of the others since the start.

    `postponed` are those of the `queued` and the `waiting` whom the provider has put off for long. `limit` is how many
    calls may be in flight, `closed_until` when the gate opens, `breaker` why it is open. `journal_dropped` counts rows
    of all models that could not be written.
    """

    queued: int
    in_flight: int
    waiting: int
    postponed: int
    limit: int
    closed_until: datetime | None
    breaker: str | None
    answered: int
    failed: int
    cancelled: int
    retried: int
    letters: int
    letters_refused: int
    journal_dropped: int


def stats_of(line: Line, account: Account, *, dropped: int, now: datetime) -> ModelStats:
    """How this line stands."""
    states = [ticket.state for ticket in line.tickets.values()]
    counts, long = account.counts, milliseconds(line.config.postpone_after)
    until = line.limits.slots.closed(now)
    behind_gate = states.count(State.QUEUED) if until is not None and until - now > line.config.postpone_after else 0
    return ModelStats(
        queued=states.count(State.QUEUED),
        in_flight=states.count(State.IN_FLIGHT),
        waiting=states.count(State.WAITING),
        postponed=behind_gate
        + sum(ticket.state is State.WAITING and ticket.delay_ms > long for ticket in line.tickets.values()),
        limit=line.limits.slots.limit,
        closed_until=until,
        breaker=line.limits.breaker.why,
        answered=counts["answered"],
        failed=counts["failed"],
        cancelled=counts["cancelled"],
        retried=counts["retried"],
        letters=counts["letters"],
        letters_refused=counts["letters_refused"],
        journal_dropped=dropped,
    )
