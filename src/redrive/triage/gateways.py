"""Gateways to language models that are alive on a broker, and what each tells about itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from redrive.core.ports import Alive, Broker, Clock
from redrive.triage.queues import QueueRow, overview

QUEUES: Final = "llm."
"""How the queue of a model begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState:
    """How one model of a gateway stands, in its own words; see `redrive.gateway.ModelStats`. `most` is the limit's."""

    gateway: str
    queued: int = 0
    in_flight: int = 0
    waiting: int = 0
    postponed: int = 0
    limit: int = 0
    most: int = 0
    closed_until: datetime | None = None
    breaker: str | None = None
    answered: int = 0
    failed: int = 0
    cancelled: int = 0
    retried: int = 0
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class GatewayRow(NamedTuple):
    """One model of one gateway: the queue it answers, who it is, and how it stands."""

    lane: QueueRow
    worker: Alive
    state: GatewayState


async def gateways(
    brokers: Mapping[str, Broker], queues: Mapping[str, Sequence[str] | None], *, clock: Clock, patience: timedelta
) -> list[GatewayRow]:
    """Those heard of lately, by queue. A broker that does not answer within `patience` is passed over."""
    rows = await overview(brokers, queues, clock=clock, patience=patience)
    return [
        GatewayRow(row, worker, state)
        for row in rows
        if row.queue.startswith(QUEUES)
        for worker in row.workers
        if (state := _state(worker.state)) is not None
    ]


def _state(told: str) -> GatewayState | None:
    """What a worker says, if it is a gateway that says it."""
    try:
        return msgspec.json.decode(told, type=GatewayState) if told else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
