"""`redrive queues`: how much is where; pause, resume and release."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from redrive.cli.anywhere import BROKER, AnyBroker, open_queues
from redrive.cli.output import Column, Exit, Fact, age, complain, show, tell

if TYPE_CHECKING:
    from redrive.triage.queues import QueueRow

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
    target: AnyBroker = BROKER,
) -> Exit:
    """Show every queue and group: what waits, runs, is due later, is held, is dead, and who works on it."""
    async with open_queues(target) as lanes:
        rows = await lanes.list(everything=everything)
    several = len({row.broker for row in rows}) > 1
    columns = (Column("broker", "broker"), *_COLUMNS) if several else _COLUMNS
    troubled = [row for row in rows if row.trouble]
    known = [row for row in rows if not row.trouble]
    show(map(_fact, known), columns, as_json=target.json, empty="no queues yet")
    complain(f"{row.queue or 'broker'}{' on' * bool(row.queue)} {row.broker}: {row.trouble}" for row in troubled)
    return Exit.UNAVAILABLE if troubled else Exit.OK


@queues.command
async def pause(
    queue: str,
    /,
    *,
    group: Group = None,
    why: Annotated[str, Parameter(help="What the next person should know.")] = "",
    target: AnyBroker = BROKER,
) -> None:
    """Stop every worker of a group from fetching, durably, until it is resumed."""
    async with open_queues(target) as lanes:
        group, why = await lanes.pause(queue, group=group, why=why)
    fact = {"queue": queue, "group": group, "paused": why}
    tell(fact, f"paused {queue} for {group}: {why}", as_json=target.json)


@queues.command
async def resume(queue: str, /, *, group: Group = None, target: AnyBroker = BROKER) -> None:
    """Let the workers of a paused group fetch again."""
    async with open_queues(target) as lanes:
        group = await lanes.resume(queue, group=group)
    fact = {"queue": queue, "group": group, "paused": None}
    tell(fact, f"resumed {queue} for {group}", as_json=target.json)


@queues.command
async def release(queue: str, /, *, group: Group = None, target: AnyBroker = BROKER) -> None:
    """Let messages run again that were given up and held because the DLQ is off."""
    async with open_queues(target) as lanes:
        group, released = await lanes.release(queue, group=group)
    fact = {"queue": queue, "group": group, "released": released}
    tell(fact, f"released {released} held messages of {queue} for {group}", as_json=target.json)


def _fact(row: "QueueRow") -> Fact:
    counts = {} if row.depth is None else asdict(row.depth)
    paused = {"workers": len(row.workers), "paused": row.paused}
    return {"broker": row.broker, "queue": row.queue, "group": row.group, **counts, **paused}
