"""`redrive queues`: how much is where; pause, resume and release."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import App, Parameter

from redrive.cli.output import Column, Fact, age, show, tell
from redrive.cli.target import HERE, Target, group_of, open_broker
from redrive.core.place import queue_of
from redrive.core.ports import Alive, Broker

queues = App(name="queues", help="Show queues; pause and resume consumers.")

Group = Annotated[str | None, Parameter(help="The group; needed only where a queue has several.")]

_COLUMNS = (
    Column("queue", "queue", style=lambda _: "bold"),
    Column("group", "group"),
    Column("waiting", "waiting", right=True),
    Column("in flight", "in_flight", right=True, spare=True),
    Column("scheduled", "scheduled", right=True, spare=True),
    Column("held", "held", right=True, spare=True, style=lambda count: "yellow" if count else ""),
    Column("dead", "dead", right=True, style=lambda count: "red" if count else ""),
    Column("oldest", "oldest_at", right=True, spare=True, shown=lambda at: age(at, now=datetime.now(UTC))),
    Column("workers", "workers", right=True),
    Column("paused", "paused", wraps=True, style=lambda _: "yellow"),
)


@queues.default
@queues.command(name="list")
async def list_queues(
    *,
    everything: Annotated[
        bool, Parameter(name="--all", help="Also what Redrive keeps beside a queue: its DLQ and its outcomes queue.")
    ] = False,
    target: Target = HERE,
) -> None:
    """Show every queue and group: what waits, runs, is due later, is held, is dead, and who works on it."""
    async with open_broker(target) as broker:
        lanes = await broker.queues()
        names = {queue for queue, _ in lanes}
        beside = {name: _beside(broker, name) for name in names}
        listed = [lane for lane in lanes if everything or beside[lane[0]] not in names]
        listed.sort(key=lambda lane: (beside[lane[0]] or lane[0], lane))
        facts = [await _fact(broker, queue, group) for queue, group in listed]
    show(facts, _COLUMNS, as_json=target.json, empty="no queues yet")


@queues.command
async def pause(
    queue: str,
    /,
    *,
    group: Group = None,
    why: Annotated[str, Parameter(help="What the next person should know.")] = "paused by a person",
    target: Target = HERE,
) -> None:
    """Stop every worker of a group from fetching, durably, until it is resumed."""
    async with open_broker(target) as broker:
        group = await group_of(broker, queue, group=group)
        await broker.pause(queue, group=group, why=why)
    fact = {"queue": queue, "group": group, "paused": why}
    tell(fact, f"paused {queue} for {group}: {why}", as_json=target.json)


@queues.command
async def resume(queue: str, /, *, group: Group = None, target: Target = HERE) -> None:
    """Let the workers of a paused group fetch again."""
    async with open_broker(target) as broker:
        group = await group_of(broker, queue, group=group)
        await broker.pause(queue, group=group, why=None)
    fact = {"queue": queue, "group": group, "paused": None}
    tell(fact, f"resumed {queue} for {group}", as_json=target.json)


@queues.command
async def release(queue: str, /, *, group: Group = None, target: Target = HERE) -> None:
    """Let messages run again that were given up and held because the DLQ is off."""
    async with open_broker(target) as broker:
        group = await group_of(broker, queue, group=group)
        released = await broker.free(queue, group=group)
    fact = {"queue": queue, "group": group, "released": released}
    tell(fact, f"released {released} held messages of {queue} for {group}", as_json=target.json)


def _beside(broker: Broker, name: str) -> str | None:
    """The queue whose DLQ or outcomes queue this is, None if it is neither."""
    patterns = (broker.capabilities.dlq, broker.capabilities.outcomes)
    return next((queue for pattern in patterns if (queue := queue_of(pattern, name)) is not None), None)


async def _fact(broker: Broker, queue: str, group: str) -> Fact:
    depth = await broker.depth(queue, group=group)
    workers = await broker.alive(queue, group=group) if group else ()
    paused = depth.paused or _held_back(workers)
    return {"queue": queue, "group": group, **asdict(depth), "workers": len(workers), "paused": paused}


def _held_back(workers: Sequence[Alive]) -> str | None:
    """Why workers hold back by themselves, and how many of them if not all do."""
    reasons = [worker.paused for worker in workers if worker.paused]
    if not reasons or len(reasons) == len(workers):
        return reasons[0] if reasons else None
    return f"{reasons[0]} ({len(reasons)} of {len(workers)} workers)"
