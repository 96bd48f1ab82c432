"""A process as a member of a group: what it has read, what is in its workers' hands, and what becomes of it.

Everything is decided by one thread, one call after the other: a plain commit and a transaction never overlap.
"""

import contextlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Condition
from typing import Final
from uuid import uuid4

from redrive.brokers.kafka.bell import Bell
from redrive.brokers.kafka.book import Book, Change, Row, Rows
from redrive.brokers.kafka.clerk import SUSPECT, Clerk, Step, row_of
from redrive.brokers.kafka.entry import Entry
from redrive.brokers.kafka.hands import Hands
from redrive.brokers.kafka.intake import Intake
from redrive.brokers.kafka.names import group_id, lane_of
from redrive.brokers.kafka.notes import Notes
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.suspects import PAUSED, Suspects
from redrive.brokers.kafka.transactions import Refused
from redrive.brokers.kafka.window import Window
from redrive.core.delivery import Delivery
from redrive.core.outcome import DONE, LOST, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.ports import Options

_CATCH_UP: Final = 20.0  # seconds
_TRIM: Final = 600.0  # seconds


class Membership:
    """One (queue, group) of this process. Every call blocks, and is made by the thread of `calls`."""

    def __init__(self, office: Office, *, queue: str, group: str, lease: timedelta) -> None:
        self.queue = queue
        self.group = group
        self.identity = uuid4().hex[:16]
        self.calls = ThreadPoolExecutor(1, thread_name_prefix=f"redrive-{queue}")
        self._office = office
        self._clock = office.clock
        self.book: Book = office.book(queue, group)
        self.clerk = Clerk(office.topics, self.book, queue=queue, group=group, clock=office.clock)
        self.suspects = Suspects(self.book, self.clerk, queue=queue, clock=office.clock)
        self._pen = office.transactions(f"redrive-{group_id(queue, group)}-{self.identity}")
        self._hands = Hands()
        self.state = Condition()
        self.subscriptions: set[object] = set()
        self.is_closed = False
        self.bell = Bell()
        self.book.changed = self.bell.ring
        self.notes = Notes(self._hands, self.state, pen=self._pen, positions=office.positions, owner=self.identity)
        topics = (queue, lane_of(queue, group))
        self._intakes = [Intake(office, self, self._hands, topic=topic, lease=lease) for topic in topics]
        self.notes.members |= {intake.topic: intake for intake in self._intakes}
        self._in_order = True
        self._trimmed = time.monotonic()

    # ------------------------------------------------------------------------------------------- taking

    def take(self, limit: int, options: Options) -> list[Delivery]:
        """Up to `limit` messages, noted durably as possibly started."""
        if PAUSED in self.book.rows:
            return []
        self.notes.resolve()
        with self.state:
            now = self._clock.now()
            chosen = self._hands.choose(limit, now=now)
        try:
            if options.moves and chosen:
                chosen = self._without_gone(chosen)
            if not chosen:
                return []
            self.notes.commit(Window.hand, chosen)
        except BaseException:
            with self.state:
                self._hands.unchoose(chosen)
            raise
        with self.state:
            ours = [entry for entry in chosen if self._hands.has(entry)]
            handed = self._hands.hand_out(ours, owner=options.owner, now=now, until=now + options.lease)
        return [entry.delivery(self.group, now=now) for entry in handed]

    def catch_up(self, limit: int, options: Options) -> list[Delivery]:
        """The same, after a look at everything that is there now."""
        self.book.refresh()
        for intake in self._intakes:
            intake.wait_until_joined(_CATCH_UP)
        taken = self.take(limit, options)
        while not taken:
            for intake in self._intakes:
                intake.wait_until_read(_CATCH_UP)
            if not self.move():
                return self.take(limit, options)
        return taken

    # ----------------------------------------------------------------------------------------- settling

    def settle(self, items: Sequence[Settlement | Delivery], options: Options) -> list[Settled]:
        """Carry out outcomes; one answer each."""
        self.notes.resolve()
        answers: dict[int, Settled] = {}
        steps: dict[int, Step] = {}
        first: dict[int | str, int] = {}
        for index, given in enumerate(items):
            item = as_settlement(given)
            token = item.delivery.token
            if first.setdefault(token, index) != index:
                continue
            if token in self._hands.answers:
                answers[index] = self._hands.answers[token]._replace(status=SettleStatus.REPEATED)
            elif isinstance(token, str):
                answers[index] = self._settle_suspect(item, options)
            elif (entry := self._hands.in_hand.get(token)) is None:
                answers[index] = LOST
            elif why := self.clerk.mistake(item, options.dlq):
                answers[index] = Settled(SettleStatus.REFUSED, why)
            else:
                steps[index] = self.clerk.step(item, entry, options.dlq)
        answers |= self._carry_out(steps, options)
        for index, given in enumerate(items):
            if index not in answers:
                answer = answers[first[as_settlement(given).delivery.token]]
                repeated = answer._replace(status=SettleStatus.REPEATED)
                answers[index] = repeated if answer.status is SettleStatus.DONE else answer
        return [answers[index] for index in range(len(items))]

    def _settle_suspect(self, item: Settlement, options: Options) -> Settled:
        why = self.clerk.mistake(item, options.dlq)
        if why:
            return Settled(SettleStatus.REFUSED, why)
        answer = self.suspects.settle(item, options.dlq)
        if answer.status is SettleStatus.DONE:
            self._hands.remember(item.delivery.token, answer)
        return answer

    def _carry_out(self, steps: Mapping[int, Step], options: Options) -> dict[int, Settled]:
        """All of them in one step; if the broker refuses it, in halves. One alone is tried in a smaller form too."""
        if not steps:
            return {}
        try:
            return self._move_out(steps) if options.moves else self._write(steps)
        except Refused as error:
            if len(steps) > 1:
                indexes = list(steps)
                half = len(indexes) // 2
                parts = ({index: steps[index] for index in part} for part in (indexes[:half], indexes[half:]))
                return {index: answer for part in parts for index, answer in self._carry_out(part, options).items()}
            ((index, step),) = steps.items()
            if step.item.letter is None or step.smaller:
                return {index: Settled(SettleStatus.REFUSED, str(error))}
            smaller = self.clerk.step(step.item, step.entry, options.dlq, smaller=True)
            return self._carry_out({index: smaller}, options)

    def _done(self, step: Step) -> Settled:
        answer = DONE._replace(due_at=step.due_at) if step.due_at else DONE
        self._hands.let_go(step.entry)
        self._hands.remember(step.entry.token, answer)
        return answer

    def _write(self, steps: Mapping[int, Step]) -> dict[int, Settled]:
        """Carry out steps, all or none. A success with nothing to write is a plain commit."""
        answers: dict[int, Settled] = {}
        entries = [step.entry for step in steps.values()]

        def done() -> None:
            answers.update({index: self._done(step) for index, step in steps.items()})

        records = self.clerk.all_records(list(steps.values()))
        if records:
            self.notes.carry_out(entries, records, then=done)
        else:
            self.notes.commit(Window.finish, entries)
            with self.state:
                done()
        return answers

    # --------------------------------------------------------------------------- collecting from a DLQ

    def _without_gone(self, chosen: Sequence[Entry]) -> list[Entry]:
        """Leave out what was redriven or removed from a DLQ by hand."""
        gone = self._office.ledger.refresh()
        left = [entry for entry in chosen if gone_key(entry) in gone]
        if left:
            self.notes.commit(Window.finish, left)
            with self.state:
                for entry in left:
                    self._hands.let_go(entry)
        return [entry for entry in chosen if entry not in left]

    def _move_out(self, steps: Mapping[int, Step]) -> dict[int, Settled]:
        """Outcomes of a subscription that moves: what is acked leaves the queue for everybody."""
        lost: set[int] = set()
        mark = self.identity.encode()
        entries = [step.entry for step in steps.values()]
        proofs = self.notes.proofs(entries)

        def decide(rows: Rows) -> Change | None:
            lost.update(i for i, step in steps.items() if rows.get(gone_key(step.entry), Row(mark)).value != mark)
            kept = [step for index, step in steps.items() if index not in lost]
            leaving = {gone_key(step.entry): Row(mark) for step in kept if step.due_at is None}
            if leaving and leaving.keys() <= rows.keys():  # a commit without an answer, which went through
                return None
            with self.state:
                commits = self.notes.commits(self.notes.after(Window.finish, entries))
            return Change(leaving, self.clerk.all_records(kept), self.notes.offsets(commits, proofs))

        with self.notes.writing:
            self._office.ledger.change(decide)
        self.notes.apply(Window.finish, entries)
        with self.state:
            for index in lost:
                self._hands.let_go(steps[index].entry)
            return {index: LOST if index in lost else self._done(step) for index, step in steps.items()}

    # ------------------------------------------------------------------------------ holding and letting go

    def extend(self, deliveries: Sequence[Delivery], options: Options) -> list[Delivery]:
        """Renew leases; return those that are lost."""
        until = self._clock.now() + options.lease
        alone = [delivery.token for delivery in deliveries if isinstance(delivery.token, str)]
        lost = self.suspects.extend(alone, until=until) if alone else set()
        with self.state:
            return [
                delivery
                for delivery in deliveries
                if (
                    delivery.token in lost
                    if isinstance(delivery.token, str)
                    else not self._hands.extend(delivery.token, until=until)
                )
            ]

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Hand back, unspent."""
        alone = [delivery.token for delivery in deliveries if isinstance(delivery.token, str)]
        if alone:
            self.suspects.release(alone)
        with self.state:
            entries = [entry for each in deliveries if (entry := self._hands.in_hand.get(each.token)) is not None]
        if not entries:
            return
        self.notes.commit(Window.release, entries)
        with self.state:
            for entry in entries:
                self._hands.in_hand.pop(entry.token, None)
            self._hands.unchoose(entries)
        self.bell.ring()

    def expire(self, now: datetime) -> None:
        """Make suspects of what is in the hands of those who are not heard of any more."""
        with self.state:
            for entry in self._hands.overdue(now):
                self._hands.let_go(entry)
                self._hands.suspects.append(entry)
        self.move()

    def move(self) -> bool:
        """Carry suspects into the book and delayed messages into the lane; whether there were any."""
        self.notes.resolve()
        with self.state:
            suspects = [entry for entry in self._hands.suspects if self._reaches(entry)]
            delayed = [entry for entry in self._hands.delayed if self._reaches(entry)]
        if not suspects and not delayed:
            return False
        now = self._clock.now()
        self._office.topics.ensure(self.book.topic)
        rows = [self.book.record(f"{SUSPECT}{entry.message.id}", row_of(entry)) for entry in suspects]
        records = [*rows, *(self.clerk.for_lane(entry, now=now) for entry in delayed)]

        gone = {*suspects, *delayed}

        def moved() -> None:
            self._hands.suspects = [entry for entry in self._hands.suspects if entry not in gone]
            self._hands.delayed = [entry for entry in self._hands.delayed if entry not in gone]

        self.notes.carry_out([*suspects, *delayed], records, then=moved)
        return True

    def _reaches(self, entry: Entry) -> bool:
        return self._hands.windows[entry.place].reaches(entry.offset)

    def keep_house(self) -> None:
        """What is to be done every now and then: hear of a pause, move what must be moved, trim the lane."""
        try:
            self.book.refresh()
            self.move()
            self.bell.ring()
            if time.monotonic() - self._trimmed > _TRIM:
                self._trimmed = time.monotonic()
                self.trim()
        except Exception as error:  # noqa: BLE001 - tried again at the next tick
            self._intakes[0].say(f"{type(error).__name__}: {error}")
        finally:
            self._in_order = True

    def tick(self) -> None:
        """Have the house kept, unless that is under way."""
        if self._in_order:
            self._in_order = False
            with contextlib.suppress(RuntimeError):  # closing
                self.calls.submit(self.keep_house)

    def trim(self) -> None:
        """Delete what is done from the lane: nobody else reads it."""
        with self.state:
            low = {place: window.low for place, window in self._hands.windows.items() if place[0] != self.queue}
        self._office.topics.trim(low)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in hand."""
        return not self._hands.in_hand

    @property
    def next_due_at(self) -> datetime | None:
        """When the next retry that this process has read is due."""
        return self._hands.next_due_at

    def close(self) -> None:
        """Leave the group; what is in hand stays marked as possibly started. Idempotent."""
        self.calls.shutdown()
        for intake in self._intakes:
            intake.stop()
        for intake in self._intakes:
            intake.close()
        self._pen.drop()

    def start(self) -> None:
        """Join the group. Idempotent."""
        for intake in self._intakes:
            intake.start()

    def look_for_faults(self) -> None:
        """After a silence: was it one of the brokers? Raises `BrokerUnavailable`."""
        if any(intake.fault is not None for intake in self._intakes):
            self._office.topics.all()
            for intake in self._intakes:
                intake.fault = None


def gone_key(entry: Entry) -> str:
    """Under which key the ledger says that an entry has left its DLQ."""
    return f"gone:{entry.message.id}"
