"""Queues over HTTP: how much is where, who works on it; pause, resume, release.

A queue's name may hold a slash, so it stands in the body and never in the path.
"""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from redrive.api.auth import PermittedRoute, ServiceOf, allowed
from redrive.core.errors import ConfigError, QueueNotFound
from redrive.core.ports import Broker
from redrive.door.filters import NO_NUL, Word
from redrive.service import Service
from redrive.triage import queues as verbs
from redrive.triage.desk import Desk

router = APIRouter(prefix="/queues", tags=["queues"], route_class=PermittedRoute)


class Worker(BaseModel):
    """A worker that was heard of lately."""

    name: str
    host: str
    pid: int
    version: str
    seen_at: datetime
    paused: str | None


class QueueFacts(BaseModel):
    """One group's work on one queue; what cannot be looked at has a `trouble` and no counts.

    A queue that only groups of others read has neither.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "broker": "redis",
                "queue": "orders",
                "group": "shop",
                "waiting": 3,
                "in_flight": 1,
                "scheduled": 0,
                "held": 0,
                "dead": 12,
                "lag": 4,
                "oldest_at": "2026-01-31T08:00:00Z",
                "oldest_age_seconds": 12.5,
                "next_due_at": None,
                "paused": None,
                "workers": [],
                "versions": ["4f2c"],
                "trouble": "",
            }
        }
    )

    broker: str
    queue: str = Field(description="Empty in the one row of a broker that does not answer.")
    group: str = Field(description="Empty where nobody has subscribed yet.")
    waiting: int | None = None
    in_flight: int | None = None
    scheduled: int | None = None
    held: int | None = Field(None, description="Given up and kept, because the DLQ is off.")
    dead: int | None = Field(None, description="Entries of the queue's DLQ that are not collected.")
    lag: int | None = Field(None, description="How many messages are due and not done.")
    oldest_at: datetime | None = None
    oldest_age_seconds: float | None = None
    next_due_at: datetime | None = None
    paused: str | None = Field(None, description="Why nothing is fetched.")
    workers: list[Worker] = []
    versions: list[str] = Field([], description="The app's versions at work.")
    trouble: str = Field("", description="Why there are no counts.")


class Lane(BaseModel):
    """Which group of which queue."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"queue": "orders", "group": "shop"}})

    queue: Word
    group: Word | None = Field(None, description="Needed only where a queue has several.")
    broker: Word | None = Field(None, description="Needed only where there are several.")


class Pause(Lane):
    """Which group, and what the next person should know."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"queue": "orders", "group": "shop", "why": "the bank is down"}}
    )

    why: str = Field("", max_length=500, pattern=NO_NUL)


class Released(BaseModel):
    """How many held messages of which group may run again."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"broker": "redis", "queue": "orders", "group": "shop", "released": 12}}
    )

    broker: str
    queue: str
    group: str
    released: int


@router.get("")
async def list_queues(
    service: ServiceOf,
    _: Annotated[Desk, Depends(allowed("read"))],
    *,
    everything: Annotated[
        bool, Query(alias="all", description="DLQs and outcomes queues too, and queues that are not looked after.")
    ] = False,
) -> list[QueueFacts]:
    """Every queue and group: what waits, runs, is due later, is held, is dead, and who works on it.

    A broker that is away is one row that says so.
    """
    rows = await verbs.overview(service.brokers, service.queues, clock=service.clock, everything=everything)
    return [_facts(row) for row in rows]


@router.post("/pause")
async def pause(lane: Pause, service: ServiceOf, desk: Annotated[Desk, Depends(allowed("pause"))]) -> QueueFacts:
    """Stop every worker of a group from fetching, durably, until it is resumed."""
    broker = _broker(service, lane.broker)
    return _facts(await verbs.pause(desk, broker, lane.queue, group=lane.group, why=lane.why))


@router.post("/resume")
async def resume(lane: Lane, service: ServiceOf, desk: Annotated[Desk, Depends(allowed("pause"))]) -> QueueFacts:
    """Let the workers of a paused group fetch again."""
    return _facts(await verbs.resume(desk, _broker(service, lane.broker), lane.queue, group=lane.group))


@router.post("/release")
async def release(lane: Lane, service: ServiceOf, desk: Annotated[Desk, Depends(allowed("pause"))]) -> Released:
    """Let messages run again that were given up and held because the DLQ is off."""
    broker = _broker(service, lane.broker)
    group = await verbs.group_of(broker, lane.queue, group=lane.group)
    released = await verbs.release(desk, broker, lane.queue, group=group)
    return Released(broker=broker.name, queue=lane.queue, group=group, released=released)


def _broker(service: Service, name: str | None) -> Broker:
    if name is None and len(service.brokers) == 1:
        return next(iter(service.brokers.values()))
    if name is None:
        raise ConfigError(f"broker: there are several, say which: {', '.join(sorted(service.brokers))}")
    if name not in service.brokers:
        raise QueueNotFound(f"no broker is named {name!r}; there are {', '.join(sorted(service.brokers)) or 'none'}")
    return service.brokers[name]


def _facts(row: verbs.QueueRow) -> QueueFacts:
    depth = row.depth
    counts = ("waiting", "in_flight", "scheduled", "held", "dead", "oldest_at", "next_due_at")
    return QueueFacts(
        broker=row.broker,
        queue=row.queue,
        group=row.group,
        **({} if depth is None else {name: getattr(depth, name) for name in counts}),
        lag=row.lag,
        oldest_age_seconds=None if row.oldest_age is None else row.oldest_age.total_seconds(),
        paused=row.paused,
        workers=[Worker.model_validate(worker, from_attributes=True) for worker in row.workers],
        versions=[*row.versions],
        trouble=row.trouble,
    )
