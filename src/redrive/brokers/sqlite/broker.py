"""The SQLite broker: one file, no server, any number of processes on one machine."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from redrive.brokers.names import check_names
from redrive.brokers.sqlite.answers import SqliteAnswers
from redrive.brokers.sqlite.dead_letters import SqliteDeadLetters
from redrive.brokers.sqlite.depth import depth
from redrive.brokers.sqlite.doctor import examine
from redrive.brokers.sqlite.housekeeping import workers
from redrive.brokers.sqlite.letters import find
from redrive.brokers.sqlite.queues import enqueue, find_lane, join, send_back
from redrive.brokers.sqlite.rows import Lane, Row, as_row
from redrive.brokers.sqlite.space import RESERVE, Space
from redrive.brokers.sqlite.subscription import SqliteSubscription
from redrive.brokers.sqlite.suspects import reap
from redrive.brokers.sqlite.transaction import MICROSECOND, Transaction
from redrive.brokers.sqlite.writer import Writer
from redrive.core.duration import NOW
from redrive.core.errors import ConfigError
from redrive.core.message import Message, without_reserved
from redrive.core.place import DLQ, DeadLetterPlace
from redrive.core.ports import (
    Alive,
    Capabilities,
    Clock,
    Depth,
    EventSink,
    Finding,
    NativeDeadLetters,
    Options,
    Subscription,
)
from redrive.core.ports.answers import Answers
from redrive.core.redrive import SendBack

CAPABILITIES: Final = Capabilities()


class SqliteBroker:
    """A `Broker` in one file, which is made when it is first used.

    `reserve` is the room on the file's disk, in bytes, below which nothing is published or handed out.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        name: str = "sqlite",
        clock: Clock,
        sink: EventSink | None = None,
        reserve: int = RESERVE,
    ) -> None:
        if str(path) in {"", ":memory:"}:
            raise ConfigError(f"sqlite: expected the path of a file, got {str(path)!r}")
        self._name = name
        self._clock = clock
        self._writer = Writer(str(Path(path).absolute()), clock=clock)
        self._space = Space(self._writer.path, reserve=reserve, clock=clock, sink=sink)

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def publish(self, queue: str, messages: Sequence[Message], *, delay: timedelta = NOW) -> Sequence[str]:
        check_names(queue=queue)
        if not messages:
            return ()
        rows = [as_row(_clean(message)) for message in messages]
        self._space.require("publish", queue=queue, size=sum(len(message.body) for message in messages))
        return await self._writer.write(partial(_publish, queue, rows, delay // MICROSECOND))

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        check_names(queue=queue, group=group)
        check_names(queue=options.dlq.dlq_of(queue, default=DLQ))
        lane = await self._writer.write(partial(_subscribe, queue, group))
        return SqliteSubscription(self._writer, lane, options=options, clock=self._clock, space=self._space)

    def dead_letters(self, queue: str, *, place: DeadLetterPlace | None = None) -> NativeDeadLetters:
        check_names(queue=queue)
        name = (place or DeadLetterPlace()).dlq_of(queue, default=DLQ)
        return SqliteDeadLetters(self._writer, name=name, queue=queue, broker=self._name)

    def answers(self) -> Answers:
        return SqliteAnswers(f"{self._writer.path}.answers", clock=self._clock)

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        for item in items:
            check_names(queue=item.queue, group=item.group)
        if not items:
            return ()
        self._space.require("send_back", queue=items[0].queue, size=sum(len(item.body) for item in items))
        return await self._writer.write(lambda transaction: [send_back(transaction, item) for item in items])

    async def original(self, queue: str, message_id: str) -> Message | None:
        found = await self._writer.read(lambda transaction: find(transaction, queue, message_id))
        return None if found is None else found.message

    async def queues(self) -> Sequence[tuple[str, str]]:
        return await self._writer.read(_queues)

    async def depth(self, queue: str, *, group: str) -> Depth:
        return await self._writer.read(lambda transaction: depth(find_lane(transaction, queue, group), transaction))

    async def pause(self, queue: str, *, group: str, why: str | None) -> None:
        await self._writer.write(partial(_pause, queue, group, why))

    async def free(self, queue: str, *, group: str) -> int:
        return await self._writer.write(partial(_free, queue, group))

    async def alive(self, queue: str, *, group: str) -> Sequence[Alive]:
        return await self._writer.read(lambda transaction: workers(find_lane(transaction, queue, group), transaction))

    async def diagnose(self) -> Sequence[Finding]:
        return await examine(self._writer.path, reserve=self._space.reserve)

    async def aclose(self) -> None:
        await self._writer.aclose()


def _clean(message: Message) -> Message:
    return message._replace(headers=without_reserved(message.headers)) if message.headers else message


def _publish(queue: str, rows: Sequence[Row], delay: int, transaction: Transaction) -> list[str]:
    return enqueue(transaction, queue, rows, due_at=transaction.now + delay if delay > 0 else None)


def _subscribe(queue: str, group: str, transaction: Transaction) -> Lane:
    lane = join(transaction, queue, group)
    reap(lane, transaction)
    return lane


def _queues(transaction: Transaction) -> list[tuple[str, str]]:
    return transaction.execute(
        "SELECT name, grp FROM lane JOIN queue ON queue.id = lane.queue ORDER BY name, grp"
    ).fetchall()


def _pause(queue: str, group: str, why: str | None, transaction: Transaction) -> None:
    lane = find_lane(transaction, queue, group)
    transaction.execute("UPDATE lane SET paused = ? WHERE id = ?", (why, lane.id))
    transaction.touched.add(lane.id)


def _free(queue: str, group: str, transaction: Transaction) -> int:
    """The trail remembers earlier attempts; what they have spent is given back, or nothing could run."""
    lane = find_lane(transaction, queue, group)
    transaction.touched.add(lane.id)
    return transaction.execute(
        "UPDATE tracked SET state = 'due', due_at = ?, failures = 0, crashes = 0, first_attempt_at = NULL"
        " WHERE lane = ? AND state = 'held'",
        (transaction.now, lane.id),
    ).rowcount
