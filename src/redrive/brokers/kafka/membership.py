"""A process as a member of a group: what it has read, what is in its workers' hands, and what becomes of it.

Transactions are made by one thread, one after the other. What needs plain commits only is done by the thread that
reads, which makes those; a plain commit and a transaction never overlap (`Notes.writing`).
"""

import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Condition
from typing import Final
from uuid import uuid4

from redrive.brokers.kafka.bell import Bell
from redrive.brokers.kafka.clerk import SUSPECT, Clerk, row_of
from redrive.brokers.kafka.desk import Desk
from redrive.brokers.kafka.entry import Entry, Lease
from redrive.brokers.kafka.gone import begin_life, life_in, strike_old
from redrive.brokers.kafka.handful import by_handful, by_share, handed_out, noted
from redrive.brokers.kafka.hands import Hands
from redrive.brokers.kafka.intake import Intake
from redrive.brokers.kafka.names import group_id, lane_of
from redrive.brokers.kafka.notes import Notes
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.steps import Asked, Steps, do_alone
from redrive.brokers.kafka.suspects import PAUSED, Suspects
from redrive.brokers.kafka.window import Window
from redrive.core.delivery import Delivery
from redrive.core.ports import Options

_CATCH_UP: Final = 20.0  # seconds
_TRIM: Final = 600.0  # seconds
_LOOK: Final = 5.0  # seconds


class Membership:
    """One (queue, group) of this process. Every call blocks, and is made by the thread of `calls` or through `post`."""

    def __init__(self, office: Office, *, queue: str, group: str, life: str, lease: timedelta) -> None:
        self.queue = queue
        self.group = group
        self.identity = uuid4().hex[:16]
        self.calls = ThreadPoolExecutor(1, thread_name_prefix=f"redrive-{queue}")
        self._office = office
        self._clock = office.clock
        self.book = office.book(queue, group)
        self.clerk = Clerk(office.topics, self.book, queue=queue, group=group, clock=office.clock)
        self.suspects = Suspects(self.book, self.clerk, queue=queue, clock=office.clock)
        self._pen = office.transactions(f"redrive-{group_id(queue, group)}-{self.identity}")
        self._hands = Hands()
        self.state = Condition()
        self.subscriptions: set[object] = set()
        self.is_closed = False
        self.bell = Bell()
        self.book.changed = self.bell.ring
        self.notes = Notes(self.state, pen=self._pen, positions=office.positions, owner=self.identity)
        self.desk = Desk(office, self, self._hands)
        topics = (queue, lane_of(queue, group))
        self._intakes = [Intake(office, self, self._hands, topic=topic, lease=lease) for topic in topics]
        self.notes.members |= {intake.topic: intake for intake in self._intakes}
        self._in_order = True
        self._life = life
        self._looked = self._trimmed = time.monotonic()

    # ------------------------------------------------------------------------------------------- taking

    def take(self, limit: int, options: Options) -> Sequence[Delivery]:
        """Up to `limit` messages, noted durably as possibly started."""
        return do_alone(self.taking(limit, options), self.notes)

    def taking(self, limit: int, options: Options) -> Steps[Sequence[Delivery]]:
        """The same in steps."""
        if PAUSED in self.book.rows:
            return []
        self.notes.resolve()
        with self.state:
            now = self._clock.now()
            chosen = self._hands.choose(limit, now=now)
        try:
            if options.moves and chosen:
                chosen = self.desk.without_gone(chosen)
            if not chosen:
                return []
            yield Window.hand, noted({handful: handful.offsets for handful in chosen})
        except BaseException:
            with self.state:
                self._hands.unchoose(chosen)
            raise
        with self.state:
            handed = self._hands.hand_out(chosen, lease=Lease(options.owner, now, now + options.lease))
            return handed_out(handed, self.group, now=now)

    def catch_up(self, limit: int, options: Options) -> Sequence[Delivery]:
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

    def post(self, asked: Asked) -> bool:
        """Have a call made by the thread that reads the queue; False if that cannot be: then it is for `calls`.

        For what needs plain commits only: a transaction would keep it from reading.
        """
        return self.notes.is_free and self._intakes[0].post(asked)

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
            tokens = [each.token for each in deliveries if isinstance(each.token, tuple)]
            tokens = [token for token in tokens if self._hands.hold(token)]
        if not tokens:
            return
        self.notes.commit((Window.release, noted(by_handful(tokens))))
        with self.state:
            self._hands.take_back(tokens)
        self.bell.ring()

    def expire(self, now: datetime) -> None:
        """Make suspects of what is in the hands of those who are not heard of any more."""
        self.notes.resolve()  # what was done without an answer is no suspect

        def set_apart(_: object) -> None:
            with self.state:
                self._hands.set_apart(now)

        if not self._hands.are_empty:
            self._intakes[0].do(set_apart)  # not in the middle of a settlement, which is made there
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

        self.notes.carry_out(by_share([*suspects, *delayed]), records, then=moved)
        return True

    def _reaches(self, entry: Entry) -> bool:
        return entry.share.window.reaches(entry.offset)

    def keep_house(self) -> None:
        """What is to be done every now and then: hear of a pause, move what must be moved, trim the lane."""
        try:
            self.book.refresh()
            self.move()
            self.bell.ring()
            if time.monotonic() - self._looked > _LOOK:
                self._looked = time.monotonic()
                self._office.topics.ask_identity(self.queue, self._seen)
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
        """Delete what is done from the lane: nobody else reads it. Of a DLQ, forget what is there no more."""
        with self.state:
            low = {place: share.window.low for place, share in self._hands.shares.items() if place[0] != self.queue}
            ours = [place for place in self._hands.shares if place[0] == self.queue]
        self._office.topics.trim(low)
        if self._office.ledger.rows:
            strike_old(self._office.ledger, self._office.positions.starts(ours))

    def _seen(self, life: str) -> None:
        if life != self._life:
            with contextlib.suppress(RuntimeError):  # closing
                self.calls.submit(self._begin_again, life)

    def _begin_again(self, life: str) -> None:
        """The queue was deleted and begun again. It is read from its start, though it may have grown past our place."""
        if life != self._life:
            if life_in(self._office.ledger.refresh(), self.queue):
                begin_life(self._office.ledger, self.queue, life)
            self._intakes[0].begin_again()
            self._life = life

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in hand."""
        return self._hands.are_empty

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
