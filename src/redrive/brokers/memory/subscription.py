"""One worker's hold on a group in memory."""

import os
import socket
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

from redrive.brokers.memory.group import Entry, Lease, Place
from redrive.brokers.memory.queues import Queue, Queues
from redrive.brokers.names import check_names
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.errors import ConfigError
from redrive.core.message import Message, without_reserved
from redrive.core.outcome import DONE, LOST, GiveUp, RetryLater, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.place import DLQ, OUTCOMES, named
from redrive.core.ports import Alive, Options
from redrive.core.row import in_rows
from redrive.core.wire import dump_outcome


class MemorySubscription:
    """The `Subscription` of the memory broker."""

    def __init__(self, queues: Queues, queue: Queue, *, group: str, options: Options) -> None:
        self._queues = queues
        self._queue = queue
        self._name = group
        self._group = queue.join(group)
        self._options = options
        self._open = True
        self.state = ""
        self._group.listeners += 1

    @property
    def incarnation(self) -> str:
        return self._queue.incarnation

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        ends_at = self._now() + wait
        while True:
            taken = list(islice(self._group.ready(self._now()), limit))
            if taken:
                return in_rows([self._hand_out(entry) for entry in taken])
            now = self._now()
            if now >= ends_at:
                return ()
            await self._queues.changed(until=min(ends_at, self._group.next_due_at(now) or ends_at))

    async def fetch_suspect(self) -> Delivery | None:
        self._group.expire(self._now())
        if self._group.paused is not None:
            return None
        for entry in self._group.at(Place.SUSPECT):
            entry.count_crash(self._options.obituary)
            return self._hand_out(entry, alone=True)
        return None

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        answers = [self._settle(as_settlement(item)) for item in items]
        self._queues.ring()
        return answers

    async def extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        until = self._now() + self._options.lease
        return [delivery for delivery in deliveries if not self._group.extend(delivery.token, until=until)]

    async def release(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._group.release(delivery.token, now=self._now())
        self._queues.ring()

    async def heartbeat(self, *, paused: str | None = None) -> int:
        owner, version = self._options.owner, self._options.version
        host, pid = socket.gethostname(), os.getpid()
        alive = Alive(owner, host, pid, version, seen_at=self._now(), paused=paused, state=self.state)
        self._group.workers[owner] = alive
        self._group.expire(self._now())
        return sum(1 for _ in self._group.at(Place.SUSPECT))

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            self._group.listeners -= 1
            self._group.workers.pop(self._options.owner, None)
            self._queues.ring()

    def _now(self) -> datetime:
        return self._queues.clock.now()

    def _hand_out(self, entry: Entry, *, alone: bool = False) -> Delivery:
        now = self._now()
        token = next(self._queues.tokens)
        lease = Lease(token, self._options.owner, since=now, until=now + self._options.lease, alone=alone)
        self._group.hand_out(entry, lease)
        return entry.delivery(self._name)

    def _settle(self, item: Settlement) -> Settled:
        token = item.delivery.token
        before = self._group.answers.get(token)
        if before is not None:
            return before._replace(status=SettleStatus.REPEATED)
        entry = self._group.in_flight.get(token)
        if entry is None:
            return LOST
        why = self._mistake(item)
        if why:
            return Settled(SettleStatus.REFUSED, why)
        try:
            answer = self._carry_out(item, entry)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, it must not fail the others
            return Settled(SettleStatus.REFUSED, f"{type(error).__name__}: {error}")
        self._group.in_flight.pop(token, None)
        self._group.remember(token, answer)
        return answer

    def _mistake(self, item: Settlement) -> str:
        """Why an item cannot be carried out; looked at before anything moves."""
        if isinstance(item.outcome, RetryLater) and item.outcome.delay is None:
            return "a retry needs its final delay"
        if isinstance(item.outcome, GiveUp) and self._options.dlq.enabled and item.letter is None:
            return "giving up needs a letter"
        if item.output is not None:
            try:
                check_names(queue=item.output.queue)
            except ConfigError as error:
                return f"output: {error}"
        return ""

    def _carry_out(self, item: Settlement, entry: Entry) -> Settled:
        """Make everything that goes along before anything moves: what cannot be made leaves all as it was."""
        delay = item.outcome.delay if isinstance(item.outcome, RetryLater) else None
        due_at = self._now() + (delay or NOW)
        along = [self._queues.new(message) for message in self._going_along(item)]
        if isinstance(item.outcome, GiveUp) and item.letter is not None and self._options.dlq.enabled:
            self._queues.put_letter(self._options.dlq.dlq_of(self._queue.name, default=DLQ), item.letter)
        for message in along:
            self._queues.put(message)
        if isinstance(item.outcome, RetryLater):
            entry.fail(item.attempt, trail=item.trail)
            entry.wait(due_at)
            return DONE._replace(due_at=due_at)
        if isinstance(item.outcome, GiveUp) and self._options.dlq.off == "hold":
            entry.trail = item.trail or entry.trail
            entry.wait(due_at, place=Place.HELD)
        else:
            self._group.remove(entry)
        return DONE

    def _going_along(self, item: Settlement) -> Iterator[Message]:
        if item.output is not None:
            yield item.output._replace(headers=without_reserved(item.output.headers))
        if item.report is not None:
            yield Message("", named(OUTCOMES, self._queue.name), dump_outcome(item.report))
