"""The thread that reads a topic for a group, and hears which of its partitions are ours."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from redrive.brokers.kafka import codes
from redrive.brokers.kafka.errors import translate
from redrive.brokers.kafka.hands import Hands
from redrive.brokers.kafka.names import group_id
from redrive.brokers.kafka.notes import put
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.orders import Order, Orders
from redrive.brokers.kafka.reading import parted, partitions_of, reader_of, stretch_of, unbroken
from redrive.brokers.kafka.record import Place
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import SPAN, Window, load_window
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.event import BrokerFaulted

T = TypeVar("T")

if TYPE_CHECKING:
    from redrive.brokers.kafka.membership import Membership

_IDLE: Final = 0.05  # seconds that a poll waits
_BUSY: Final = 0.002  # the same while orders come in: the client does one thing at a time
_LATELY: Final = 0.1  # seconds
_ORDER: Final = 60.0  # seconds
_SOON: Final = 3.0  # seconds
_HOUSEKEEPING: Final = 1.0  # seconds
_AT_ONCE: Final = 1000
_FULL: Final = 4000
"""Messages read and not started, beyond which no more are read."""
_MOMENT: Final = 1.0  # seconds
_NEARLY: Final = SPAN * 3 // 4
"""How far the lowest message must be left behind before a partition that was paused for it is read again."""
_LONGEST_SESSION: Final = 45_000
_SHORTEST_SESSION: Final = 6_000
_ANSWER: Final = 20_000
_SILENCE: Final = 120_000
"""Milliseconds for which the others of a group wait for a member that does not read. This one always reads."""


class Intake:
    """Reads into the hands of its membership. Started at the first fetch: who never fetches holds no partition."""

    def __init__(self, office: Office, membership: "Membership", hands: Hands, *, topic: str, lease: timedelta) -> None:
        self.topic = topic
        self.group_id = office.topics.dlq.reader(topic, queue=membership.queue, group=membership.group)
        self.fault: str | None = None
        self._office = office
        self._membership = membership
        self._state = membership.state
        self._hands = hands
        session = min(max(int(lease.total_seconds() * 1000), _SHORTEST_SESSION), _LONGEST_SESSION)
        self._settings = {
            "session.timeout.ms": session,
            "heartbeat.interval.ms": session // 15,
            "fetch.wait.max.ms": 100,
            "socket.timeout.ms": _ANSWER,
            "max.poll.interval.ms": _SILENCE,
            "partition.assignment.strategy": "cooperative-sticky",
            **office.address.of_consumer(),
            "group.id": self.group_id,
            "client.id": f"{office.address.settings.get('client.id', 'redrive')}-{membership.identity}",
            "error_cb": self._faulted,
        }
        self._read_one = reader_of(topic, queue=membership.queue)
        self._read_stretch = stretch_of
        self._shares: dict[int, Share] = {}  # by the number of the partition
        self._paused: set[Place] = set()
        self._consumer: Consumer | None = None
        self._thread: Thread | None = None
        self._joined = False
        self._strange: set[Place] = set()  # ours, but it is not known where to go on there
        self._begun_again: set[Place] = set()  # of a topic that is not the one that was read before
        self._closing = Event()
        self._orders = Orders(membership.notes)
        self._busy_at = 0.0
        self._crowded_at = 0.0

    def do(self, call: Callable[[Consumer], T]) -> T:
        """Have something done with the client by the thread that reads, between two rebalances; wait for it."""
        if current_thread() is self._thread and self._consumer is not None:
            return call(self._consumer)
        answer: Future[T] = Future()

        def order(consumer: Consumer) -> None:
            try:
                answer.set_result(call(consumer))
            except Exception as error:  # noqa: BLE001 - for whoever ordered it
                answer.set_exception(error)

        if not self.post(order):
            raise BrokerUnavailable("kafka: this process is no member of the group")
        try:
            return answer.result(_ORDER)
        except TimeoutError:
            raise BrokerUnavailable(f"kafka: no answer to a commit within {_ORDER:g} s") from None

    def post(self, order: Order) -> bool:
        """Leave an order for the thread that reads; False if there is none, or it is about to end."""
        return self._thread is not None and self._orders.leave(order)

    def start(self) -> None:
        """Join the group. Idempotent."""
        with self._state:
            if self._thread is not None:
                return
            try:
                self._consumer = Consumer(self._settings)
                self._join(self._consumer)
            except KafkaException as error:
                raise translate(error) from error
            self._thread = Thread(target=self._read, daemon=True, name=f"redrive-read-{self.topic}")
            self._thread.start()

    def begin_again(self) -> None:
        """Read from the start: the topic is not the one that was read."""
        self.post(lambda _: self._begun_again.update(self._lose_all()))

    def stop(self) -> None:
        """Begin to leave the group."""
        self._orders.close()
        self._closing.set()

    def close(self) -> None:
        """Wait until the group is left."""
        if self._thread is not None:
            self._thread.join()

    def wait_until_joined(self, patience: float) -> None:
        """Wait until it is known which partitions are ours, and where to go on."""
        self._wait(lambda: self._joined and not self._strange, patience, what="no assignment of partitions")

    def wait_until_read(self, patience: float) -> None:
        """Wait until everything that is in our partitions now has been read."""
        with self._state:
            shares = {share.place: share for share in self._shares.values() if share.place not in self._paused}
        ends = self._office.promises.ends(shares)
        self._wait(
            lambda: all(share.position >= ends[place] or not share.is_ours for place, share in shares.items()),
            patience,
            what="what was published does not arrive",
        )

    def say(self, why: str) -> None:
        """Tell of a fault that nobody asked for."""
        sink = self._office.sink
        if sink is not None:
            sink.emit(
                BrokerFaulted(
                    at=self._office.clock.now(),
                    broker=self._office.name,
                    queue=self._membership.queue,
                    group=self._membership.group,
                    call="fetch",
                    why=f"kafka: {why}",
                )
            )

    def _wait(self, condition: Callable[[], bool], patience: float, *, what: str) -> None:
        with self._state:
            if not self._state.wait_for(condition, patience):
                raise BrokerUnavailable(f"kafka: {what}")

    # ------------------------------------------------------------------------------------------ the thread

    def _read(self) -> None:
        consumer = self._consumer
        assert consumer is not None  # noqa: S101 - start has made it
        cleaned = time.monotonic()
        while not self._closing.is_set():
            try:
                self._read_some(consumer)
            except Exception as error:  # noqa: BLE001 - whatever happens, the group is not left in silence
                self.say(f"{type(error).__name__}: {error}")
                time.sleep(_IDLE)
            if self._hands.suspects or self._hands.delayed or time.monotonic() - cleaned > _HOUSEKEEPING:
                cleaned = time.monotonic()
                self._membership.tick()
        self._orders.obey(consumer)
        with contextlib.suppress(KafkaException, BrokerError):
            consumer.close()

    def _read_some(self, consumer: Consumer) -> None:
        crowded = self._crowded_at > 0
        if self._orders.obey(consumer, wait=_IDLE if crowded else 0.0):
            self._busy_at = time.monotonic()
        first: Any = consumer.poll(0 if crowded else _BUSY if time.monotonic() - self._busy_at < _LATELY else _IDLE)
        if first is not None:
            share = self._shares.get(first.partition())
            rest = [] if crowded else consumer.consume(_AT_ONCE, 0)
            # If its partition has left and come back meanwhile, it is read again with what was before it.
            is_current = share is self._shares.get(first.partition())
            self._arrived([first, *rest] if is_current else rest)
            self._busy_at = time.monotonic()  # orders will follow
        if first is not None or self._paused or crowded:
            self._hold_back(consumer)
        if self._strange:
            # By ourselves, not by leaving the group: a client that is just joining it anew would stay in it, keep what
            # it was assigned, and never tell of that again.
            self._begin(consumer, sorted(self._strange), again=True)

    def _join(self, consumer: Consumer) -> None:
        consumer.subscribe([self.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def _arrived(self, messages: Sequence[Any]) -> None:
        with self._state:
            try:
                self._take_in(messages)
            except BaseException:  # what was not taken in would be passed over, as if it were no message
                self._lose_all()
                raise
            self._state.notify_all()
        self._membership.bell.ring()

    def _take_in(self, found: Sequence[Any]) -> None:
        """Most are new, and none of our headers is in them: those are taken in as they came, by the stretch."""
        messages, events = parted(found)
        if self.topic != self._membership.queue:
            for message in messages:
                self._take_in_one(message)
        else:
            for number, some in partitions_of(messages):
                if number in self._shares:
                    for first, row in unbroken(some):
                        self._take_in_row(row, self._shares[number], first)
        for event in events:  # behind what was read: the end of a partition is where that ends, or before it
            self._told_of(event.error(), self._shares.get(event.partition()), event.offset())

    def _take_in_row(self, row: Sequence[Any], share: Share, first: int) -> None:
        is_new = first >= share.position and first >= share.noted
        stretch = self._read_stretch(row, share, first) if is_new else None
        if stretch is None:
            for message in row:
                self._take_in_one(message)
            return
        share.reached(first)
        self._hands.ready.append(stretch)
        share.position = first + len(row)

    def _take_in_one(self, message: Any) -> None:
        share, offset = self._shares.get(message.partition()), message.offset()
        if share is None or offset < share.position:
            if share is not None and offset < share.window.low:  # the client was sent back to the start
                self._begun_again.add(share.place)
                raise BrokerError(f"{share.prefix}{offset} comes after it was done: the topic was begun again")
            return
        share.reached(offset)
        share.position = offset + 1
        if offset < share.noted and share.window.is_done(offset):
            return
        entry = self._read_one(message, share, offset)
        if offset < share.noted and share.window.is_handed(offset):
            self._hands.suspects.append(entry)
        elif self.topic == self._membership.queue and entry.due_at and entry.due_at > self._office.clock.now():
            self._hands.delayed.append(entry)
        else:
            self._hands.add(entry)

    def _told_of(self, error: KafkaError, share: Share | None, offset: int) -> None:
        if error.code() == codes.PARTITION_EOF:
            if share is not None:
                share.reached(offset)
        elif not error.retriable():
            self.say(f"{error.name()}: {error.str()}")

    def _hold_back(self, consumer: Consumer) -> None:
        """Read no further than there is room for. Retries are few, and their time must be known.

        A pause throws away what the client has fetched: it is for who stays crowded. A moment is just waited for.
        """
        now = time.monotonic()
        with self._state:
            full = self._hands.ready.size > _FULL and self.topic == self._membership.queue
            self._crowded_at = (self._crowded_at or now) if full else 0.0
            stays = full and now - self._crowded_at > _MOMENT
            wanted = {
                share.place
                for share in self._shares.values()
                if share.position - share.window.low >= (_NEARLY if share.place in self._paused else SPAN)
                or stays
                or (full and share.place in self._paused)
            }
            now_paused, now_free = wanted - self._paused, self._paused - wanted
            self._paused = wanted
        if now_paused:
            consumer.pause([TopicPartition(*place) for place in now_paused])
        if now_free:
            consumer.resume([TopicPartition(*place) for place in now_free])

    # ----------------------------------------------------------------------------------------- rebalances

    def _assigned(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        places: list[Place] = [(each.topic, each.partition) for each in partitions]
        if self._closing.is_set():  # what comes while we leave is passed on; the client aborts on a commit then
            return
        try:
            self._begin(consumer, places)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client has them, and we try again
            self.say(f"{type(error).__name__}: {error}")
            self._strange.update(places)

    def _begin(self, consumer: Consumer, places: Sequence[Place], *, again: bool = False) -> None:
        """Go on where the members before us left off; `again` if the client has these partitions already."""
        windows = self._windows(places)
        if again:
            consumer.incremental_unassign([TopicPartition(*place) for place in places])
        consumer.incremental_assign([TopicPartition(*place, windows[place].low) for place in places])
        consumer.resume([TopicPartition(*place) for place in places])  # a pause may outlive a rebalance
        put(consumer, windows, owner=self._membership.identity)
        shares = [Share(place, window) for place, window in windows.items()]
        with self._state:
            self._hands.come(shares)
            self._shares |= {share.place[1]: share for share in shares}
            self._strange.difference_update(places)
            self._begun_again.difference_update(places)
            self._joined = True
            self._state.notify_all()
        self._membership.bell.ring()

    def _windows(self, places: Sequence[Place]) -> dict[Place, Window]:
        """Where the members before us left off. Whoever left in disorder is fenced first, and its transaction ended."""
        positions = self._office.positions
        before = positions.committed(self.group_id, places, stable=False)
        owners = {load_window(*commit)[1] for commit in before.values()} - {"", self._membership.identity}
        for owner in owners:
            pen = self._office.transactions(
                f"redrive-{group_id(self._membership.queue, self._membership.group)}-{owner}"
            )
            pen.open()
            pen.drop()
        try:
            found = positions.committed(self.group_id, places, patience=_SOON)
        except BrokerUnavailable:  # a collector moves its offsets with the ledger, and may have died doing so
            self._office.ledger.take_over()
            found = positions.committed(self.group_id, places)
        windows = {place: load_window(*commit)[0] for place, commit in found.items()}
        anew = self._begun_anew(windows)
        starts = positions.starts([place for place in places if place not in windows or place in anew])
        return {place: Window(starts[place]) if place in starts else windows[place] for place in places}

    def _begun_anew(self, windows: Mapping[Place, Window]) -> set[Place]:
        """Partitions that are not those which were read: somebody deleted the topic, or it was cut off. It is said."""
        ends = self._office.positions.ends(windows)
        anew = {place for place in windows if place in self._begun_again or windows[place].low > ends[place]}
        self._office.promises.forget(anew)
        for topic, number in sorted(anew):
            self.say(f"{topic} [{number}] is not as it was when it was read, and is read from its start")
        return anew

    def _revoked(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Leave partitions in order: what is in hand here may run again elsewhere, and in company.

        Only at the end of the process it stays marked as possibly started.
        """
        places = [(each.topic, each.partition) for each in partitions]
        with self._membership.notes.writing, self._state:  # a transaction that is under way counts
            in_hand = {} if self._closing.is_set() else self._hands.in_hand
            shares = [self._shares[number] for _, number in places if number in self._shares]
            left = {share.place: share.window.release(in_hand.get(share, ())) for share in shares}
            self._forget(places)
        if left and self._membership.notes.is_sure:  # else the last word about them may not be ours
            with contextlib.suppress(BrokerError):  # then what was in hand is found as suspect
                put(consumer, left, owner="")

    def _lost(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:  # noqa: ARG002 - the client's form
        with self._state:
            self._forget([(each.topic, each.partition) for each in partitions])

    def _lose_all(self) -> Sequence[Place]:
        """Where to go on is to be found again, in all that is ours."""
        with self._state:
            places = [share.place for share in self._shares.values()]
            self._forget(places)
            self._strange.update(places)
            return places

    def _forget(self, places: Sequence[Place]) -> None:
        self._hands.leave(places)
        for place in places:
            self._shares.pop(place[1], None)
            self._paused.discard(place)
            self._strange.discard(place)
        self._state.notify_all()

    def _faulted(self, error: KafkaError) -> None:
        if error.code() == codes.ALL_BROKERS_DOWN:
            self.fault = error.str()
        elif error.fatal():
            self.say(error.str())
