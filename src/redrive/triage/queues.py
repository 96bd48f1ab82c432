"""Queues: how much is where, who works on it; pause, resume, release."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, QueueNotFound
from redrive.core.place import COLLECTORS, DeadLetterPlace, queue_of
from redrive.core.ports import Alive, Broker, Clock, Depth
from redrive.core.url import mask_url
from redrive.triage.desk import Desk

PATIENCE = timedelta(seconds=5)  # with a broker that neither answers nor refuses
_AT_ONCE = 8  # lanes that one broker is asked about


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """One group's work on one queue. Of what cannot be looked at there is a row too: `trouble` says why.

    A queue that only groups of others read has neither `depth` nor `trouble`.

    `paused` is why nothing is fetched: by a person for the whole group, or by workers that hold back by themselves.
    """

    broker: str
    queue: str = ""
    group: str = ""
    depth: Depth | None = None
    workers: Sequence[Alive] = ()
    paused: str | None = None
    oldest_age: timedelta | None = None
    trouble: str = ""

    @property
    def lag(self) -> int | None:
        """How many messages are due and not done."""
        return None if self.depth is None else self.depth.waiting + self.depth.in_flight

    @property
    def versions(self) -> Sequence[str]:
        """The versions of the app that are at work."""
        return sorted({worker.version for worker in self.workers if worker.version})


async def overview(
    brokers: Mapping[str, Broker],
    queues: Mapping[str, Sequence[str] | None],
    *,
    clock: Clock,
    everything: bool = False,
    patience: timedelta | None = None,
) -> list[QueueRow]:
    """Every group of the queues that are looked after, by broker; where `queues` has None for a broker, all it has.

    What Redrive keeps beside a queue, and queues that are not looked after, are there only if `everything` is wanted. A
    broker that is away is one row that says so, and takes nothing from the others; one that has not answered within
    `patience`, five seconds unless told, counts as away.
    """
    within = PATIENCE if patience is None else patience
    asked = [
        _broker_rows(
            broker, None if everything else queues.get(name), clock=clock, everything=everything, patience=within
        )
        for name, broker in sorted(brokers.items())
    ]
    return [row for rows in await asyncio.gather(*asked) for row in rows]


async def _broker_rows(
    broker: Broker, queues: Sequence[str] | None, *, clock: Clock, everything: bool, patience: timedelta
) -> list[QueueRow]:
    deadline = asyncio.get_running_loop().time() + patience.total_seconds()
    one_of_few = asyncio.Semaphore(_AT_ONCE)

    async def row(queue: str, group: str) -> QueueRow:
        try:
            async with asyncio.timeout_at(deadline), one_of_few:
                now = clock.now()
                return await (look(broker, queue, group, now=now) if group else _unread(broker, queue, now=now))
        except (BrokerError, TimeoutError) as error:
            return QueueRow(broker=broker.name, queue=queue, group=group, trouble=_said(error, patience))

    try:
        async with asyncio.timeout_at(deadline):
            lanes = await lanes_of(broker, queues, everything=everything)
    except (BrokerError, TimeoutError) as error:
        return [QueueRow(broker=broker.name, trouble=_said(error, patience))]
    return await asyncio.gather(*(row(queue, group) for queue, group in lanes))


async def lanes_of(
    broker: Broker, queues: Sequence[str] | None = None, *, everything: bool = False
) -> list[tuple[str, str]]:
    """Every (queue, group), of these queues or of all; of what is kept beside a queue only if `everything` is wanted.

    What collectors read is kept beside a queue, whatever it is called.
    A queue that is asked for and that nobody has begun is there without a group.
    """
    known = await broker.queues()
    names = {queue for queue, _ in known}
    beside = {name: _beside(broker, name) for name in names}
    if queues is not None:
        lanes = [lane for lane in known if lane[0] in queues] + [(name, "") for name in queues if name not in names]
    else:
        lanes = [lane for lane in known if everything or not (beside[lane[0]] in names or lane[1] == COLLECTORS)]
    return sorted(lanes, key=lambda lane: (beside.get(lane[0]) or lane[0], lane))


async def look(broker: Broker, queue: str, group: str, *, now: datetime) -> QueueRow:
    """One group's work on one queue. Raises `QueueNotFound`, `BrokerUnavailable`."""
    try:
        depth = await broker.depth(queue, group=group)
    except (BrokerUnavailable, QueueNotFound):
        raise
    except BrokerError as error:  # something else has a name that is ours: no reason to hide the other queues
        return QueueRow(broker=broker.name, queue=queue, group=group, trouble=mask_url(str(error)))
    workers = await broker.alive(queue, group=group) if group else ()
    return QueueRow(
        broker=broker.name,
        queue=queue,
        group=group,
        depth=depth,
        workers=workers,
        paused=depth.paused or _held_back(workers),
        oldest_age=max(now - depth.oldest_at, timedelta(0)) if depth.oldest_at else None,
    )


async def _unread(broker: Broker, queue: str, *, now: datetime) -> QueueRow:
    """A queue that no group of ours reads.

    One that is not there yet may have a DLQ. One that only groups of others read has no counts: the broker lists none.
    """
    try:
        return await look(broker, queue, "", now=now)
    except QueueNotFound:
        others = await broker.dead_letters(queue, place=DeadLetterPlace(name=queue)).length()
        depth = None if others else Depth(dead=await broker.dead_letters(queue).length())
        return QueueRow(broker=broker.name, queue=queue, depth=depth)


async def group_of(broker: Broker, queue: str, *, group: str | None) -> str:
    """The group asked for, or the only one there is. Raises `QueueNotFound` or, with several, `ConfigError`."""
    groups = sorted(name for found, name in await broker.queues() if found == queue and name)
    if group is not None:
        if group in groups:
            return group
        there = f"there are {', '.join(groups)}" if groups else "nobody has subscribed yet"
        raise QueueNotFound(f"queue {queue!r} has no group {group!r}; {there}")
    if len(groups) == 1:
        return groups[0]
    if not groups:
        raise QueueNotFound(f"no group consumes a queue named {queue!r}")
    raise ConfigError(f"group: queue {queue!r} has several groups, say which: {', '.join(groups)}")


async def pause(desk: Desk, broker: Broker, queue: str, *, group: str | None = None, why: str = "") -> QueueRow:
    """Stop every worker of a group from fetching, durably, until it is resumed. Raises as `group_of`.

    It is on record before it is done: a broker that does not answer leaves a record of what was asked for.
    """
    return await _change(desk, broker, queue, group=group, why=why or f"paused by {desk.who}")


async def resume(desk: Desk, broker: Broker, queue: str, *, group: str | None = None) -> QueueRow:
    """Let the workers of a paused group fetch again. Raises, and is recorded, as `pause`."""
    return await _change(desk, broker, queue, group=group, why=None)


async def release(desk: Desk, broker: Broker, queue: str, *, group: str | None = None) -> int:
    """Let messages run again that were given up and held because the DLQ is off; return how many.

    Raises, and is recorded, as `pause`.
    """
    group = await group_of(broker, queue, group=group)
    await desk.store.record(desk.act("queues.release", selection=_words(broker, queue, group)))
    return await broker.free(queue, group=group)


async def _change(desk: Desk, broker: Broker, queue: str, *, group: str | None, why: str | None) -> QueueRow:
    group = await group_of(broker, queue, group=group)
    words = _words(broker, queue, group)
    act = (
        desk.act("queues.resume", selection=words)
        if why is None
        else desk.act("queues.pause", selection=words, why=why)
    )
    await desk.store.record(act)
    await broker.pause(queue, group=group, why=why)
    return await look(broker, queue, group, now=desk.clock.now())


def _words(broker: Broker, queue: str, group: str) -> str:
    return f"broker={broker.name}, queue={queue}, group={group}"


def _said(error: BrokerError | TimeoutError, patience: timedelta) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {patience.total_seconds():g} s"
    return mask_url(str(error)) or type(error).__name__


def _beside(broker: Broker, name: str) -> str | None:
    """The queue whose DLQ or outcomes queue this is, None if it is neither."""
    patterns = (broker.capabilities.dlq, broker.capabilities.outcomes)
    return next((queue for pattern in patterns if (queue := queue_of(pattern, name)) is not None), None)


def _held_back(workers: Sequence[Alive]) -> str | None:
    """Why workers hold back by themselves, and how many of them if not all do."""
    reasons = [worker.paused for worker in workers if worker.paused]
    if not reasons or len(reasons) == len(workers):
        return reasons[0] if reasons else None
    return f"{reasons[0]} ({len(reasons)} of {len(workers)} workers)"
