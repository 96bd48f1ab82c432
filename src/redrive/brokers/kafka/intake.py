"""The thread that reads a topic for a group, and hears which of its partitions are ours."""

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import timedelta
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from redrive.brokers.kafka import codes
from redrive.brokers.kafka.entry import entry_in_lane, entry_in_queue
from redrive.brokers.kafka.errors import translate
from redrive.brokers.kafka.hands import Hands, offsets_of
from redrive.brokers.kafka.names import group_id, group_reading
from redrive.brokers.kafka.notes import put
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.record import Place, Read, read_of
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
_HOUSEKEEPING: Final = 1.0  # seconds
_AT_ONCE: Final = 1000
_FULL: Final = 4000
"""Messages read and not started, beyond which no more are read."""
_LONGEST_SESSION: Final = 45_000
_SHORTEST_SESSION: Final = 6_000


class Intake:
    """Reads into the hands of its membership. Started at the first fetch: who never fetches holds no partition."""

    def __init__(self, office: Office, membership: "Membership", hands: Hands, *, topic: str, lease: timedelta) -> None:
        self.topic = topic
        self.group_id = group_reading(topic, queue=membership.queue, group=membership.group)
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
            "partition.assignment.strategy": "cooperative-sticky",
            **office.address.of_consumer(),
            "group.id": self.group_id,
            "client.id": f"redrive-{membership.identity}",
            "error_cb": self._faulted,
        }
        self._positions: dict[Place, int] = {}
        self._paused: set[Place] = set()
        self._consumer: Consumer | None = None
        self._thread: Thread | None = None
        self._joined = False
        self._rejoin = False
        self._closing = Event()
        self._orders: SimpleQueue[Callable[[Consumer], None]] = SimpleQueue()
        self._ordered_at = 0.0

    def do(self, call: Callable[[Consumer], T]) -> T:
        """Have something done with the client by the thread that reads, between two rebalances; wait for it."""
        if self._thread is None or self._closing.is_set():
            raise BrokerUnavailable("kafka: this process is no member of the group")
        answer: Future[T] = Future()

        def order(consumer: Consumer) -> None:
            try:
                answer.set_result(call(consumer))
            except Exception as error:  # noqa: BLE001 - for whoever ordered it
                answer.set_exception(error)

        self._orders.put(order)
        try:
            return answer.result(_ORDER)
        except TimeoutError:
            raise BrokerUnavailable(f"kafka: no answer to a commit within {_ORDER:g} s") from None

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

    def stop(self) -> None:
        """Begin to leave the group."""
        self._closing.set()

    def close(self) -> None:
        """Wait until the group is left."""
        if self._thread is not None:
            self._thread.join()

    def wait_until_joined(self, patience: float) -> None:
        """Wait until it is known which partitions are ours."""
        self._wait(lambda: self._joined, patience, what="no assignment of partitions")

    def wait_until_read(self, patience: float) -> None:
        """Wait until everything that is in our partitions now has been read."""
        with self._state:
            places = [place for place in self._positions if place not in self._paused]
        ends = self._office.promises.ends(places)
        self._wait(
            lambda: all(self._positions.get(place, end) >= end for place, end in ends.items()),
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
        self._obey(consumer)
        with contextlib.suppress(KafkaException, BrokerError):
            consumer.close()

    def _obey(self, consumer: Consumer) -> None:
        with contextlib.suppress(Empty):
            while True:
                self._orders.get_nowait()(consumer)
                self._ordered_at = time.monotonic()

    def _read_some(self, consumer: Consumer) -> None:
        self._obey(consumer)
        first = consumer.poll(_BUSY if time.monotonic() - self._ordered_at < _LATELY else _IDLE)
        if first is not None:
            self._arrived([first, *consumer.consume(_AT_ONCE, 0)])
        self._hold_back(consumer)
        if self._rejoin:  # it was not known where to begin: once more from the start
            self._rejoin = False
            consumer.unsubscribe()
            self._join(consumer)

    def _join(self, consumer: Consumer) -> None:
        consumer.subscribe([self.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def _arrived(self, messages: Sequence[Any]) -> None:
        with self._state:
            for message in messages:
                error = message.error()
                if error is None:
                    self._take_in(read_of(message))
                elif error.code() == codes.PARTITION_EOF:
                    self._reached((message.topic(), message.partition()), message.offset())
                elif not error.retriable():
                    self.say(f"{error.name()}: {error.str()}")
            self._state.notify_all()
        self._membership.bell.ring()

    def _take_in(self, read: Read) -> None:
        place: Place = (read.topic, read.partition)
        if place not in self._hands.windows or read.offset < self._positions[place]:
            return
        self._reached(place, read.offset)
        self._positions[place] = read.offset + 1
        window = self._hands.windows[place]
        if window.is_done(read.offset):
            return
        queue = self._membership.queue
        entry = entry_in_queue(read) if read.topic == queue else entry_in_lane(read, queue=queue)
        entry.term = self._hands.term(place)
        if window.is_handed(read.offset):
            self._hands.suspects.append(entry)
        elif read.topic == queue and entry.due_at is not None and entry.due_at > self._office.clock.now():
            self._hands.delayed.append(entry)
        else:
            self._hands.add(entry)

    def _reached(self, place: Place, offset: int) -> None:
        """Everything before `offset` has been seen; what was passed over on the way is no message."""
        window, before = self._hands.windows.get(place), self._positions.get(place, offset)
        if window is None or before >= offset:
            return
        self._hands.windows[place] = window.skip(before, offset)
        self._positions[place] = offset

    def _hold_back(self, consumer: Consumer) -> None:
        """Read no further than there is room for. Retries are few, and their time must be known."""
        with self._state:
            full = self._hands.ready > _FULL and self.topic == self._membership.queue
            wanted = {
                place
                for place, position in self._positions.items()
                if full or position - self._hands.windows[place].low >= SPAN
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
        try:
            windows = self._windows(places)
            consumer.incremental_assign([TopicPartition(*place, windows[place].low) for place in places])
            put(consumer, windows, owner=self._membership.identity)
        except (BrokerError, KafkaException) as error:
            self.say(f"{type(error).__name__}: {error}")
            self._rejoin = True
            return
        with self._state:
            self._hands.come(windows)
            self._positions |= {place: window.low for place, window in windows.items()}
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
        found = positions.committed(self.group_id, places)
        starts = positions.starts([place for place in places if place not in found])
        return {place: load_window(*found[place])[0] if place in found else Window(starts[place]) for place in places}

    def _revoked(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Leave partitions in order: what is in hand here may run again elsewhere, and in company.

        Only at the end of the process it stays marked as possibly started.
        """
        places = [(each.topic, each.partition) for each in partitions]
        with self._membership.notes.writing, self._state:  # a transaction that is under way counts
            released = [] if self._closing.is_set() else self._hands.in_hand.values()
            left = {place: self._hands.windows[place] for place in places if place in self._hands.windows}
            left |= {place: left[place].release(offsets) for place, offsets in offsets_of(released) if place in left}
            self._forget(places)
        if left:
            with contextlib.suppress(BrokerError):  # then what was in hand is found as suspect
                put(consumer, left, owner="")

    def _lost(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:  # noqa: ARG002 - the client's form
        with self._state:
            self._forget([(each.topic, each.partition) for each in partitions])

    def _forget(self, places: Sequence[Place]) -> None:
        self._hands.leave(places)
        for place in places:
            self._positions.pop(place, None)
            self._paused.discard(place)
        self._state.notify_all()

    def _faulted(self, error: KafkaError) -> None:
        if error.code() == codes.ALL_BROKERS_DOWN:
            self.fault = error.str()
        elif error.fatal():
            self.say(error.str())
