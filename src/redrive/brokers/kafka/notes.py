"""What a member writes down about its partitions: in plain commits, and in transactions with what takes their place.

Plain commits are made by the thread that reads, which also hears of rebalances: so none can come too late. A
transaction is not its business; who takes a partition away waits for one that is under way.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Condition, Lock
from typing import Any, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from redrive.brokers.kafka.entry import Entry
from redrive.brokers.kafka.errors import translate
from redrive.brokers.kafka.hands import Hands, offsets_of
from redrive.brokers.kafka.positions import Positions
from redrive.brokers.kafka.record import Place, Record
from redrive.brokers.kafka.transactions import Offsets, Transactions, Unsure
from redrive.brokers.kafka.window import Window
from redrive.core.errors import BrokerUnavailable

T = TypeVar("T")

Deed = Callable[[Window, Sequence[int]], Window]


class Member(Protocol):
    """Who reads a topic, in a consumer group of its own."""

    @property
    def group_id(self) -> str: ...
    def do(self, call: Callable[[Consumer], T]) -> T: ...


class Notes:
    """The commits of one process for one group. `commit` and `carry_out` are called by one thread only."""

    def __init__(self, hands: Hands, state: Condition, *, pen: Transactions, positions: Positions, owner: str) -> None:
        self._hands = hands
        self._state = state
        self._pen = pen
        self._positions = positions
        self._owner = owner
        self._unsure: tuple[Mapping[Place, tuple[int, str]], Callable[[], None]] | None = None
        self.members: dict[str, Member] = {}
        self.writing = Lock()

    def commit(self, deed: Deed, entries: Sequence[Entry]) -> None:
        """Write down what has become of entries. Raises `BrokerUnavailable` if that is not known to be done."""
        self.resolve()
        for topic, member in self.members.items():
            some = [entry for entry in entries if entry.place[0] == topic]
            if some:
                member.do(partial(self._commit, deed, some))

    def _commit(self, deed: Deed, entries: Sequence[Entry], consumer: Consumer) -> None:
        with self._state:
            after = self.after(deed, entries)
        put(consumer, after, owner=self._owner)
        self.apply(deed, entries)

    def carry_out(self, entries: Sequence[Entry], records: Sequence[Record], *, then: Callable[[], object]) -> None:
        """Write down that entries are done, with the records that take their place, and do `then`.

        Raises `Refused`, and `BrokerUnavailable`: after it, who asks again hears what has become of it.
        """
        self.resolve()
        proofs = self.proofs(entries)
        with self.writing:
            with self._state:
                commits = self.commits(self.after(Window.finish, entries))
            try:
                self._pen.carry_out(records, offsets=self.offsets(commits, proofs))
            except Unsure:
                self._unsure = (commits, lambda: self._went_through(entries, then))
        if self._unsure is not None:
            self.resolve()
            raise BrokerUnavailable("kafka: a transaction was not answered; ask again for what has become of it")
        self._went_through(entries, then)

    def resolve(self) -> None:
        """Find out what became of an unanswered transaction. Raises `BrokerUnavailable` while nobody knows."""
        if self._unsure is None:
            return
        commits, went_through = self._unsure
        self._pen.open()
        found = self._committed(commits)
        self._unsure = None
        if all(found.get(place) == commit for place, commit in commits.items()):
            went_through()

    def after(self, deed: Deed, entries: Iterable[Entry]) -> dict[Place, Window]:
        """What the windows of these entries will be. Raises `BrokerUnavailable` if one is no longer ours."""
        kept = list(entries)
        if not all(self._hands.has(entry) for entry in kept):
            raise BrokerUnavailable("kafka: a partition has passed to another member")
        return {place: deed(self._hands.windows[place], offsets) for place, offsets in offsets_of(kept)}

    def apply(self, deed: Deed, entries: Iterable[Entry]) -> None:
        """What was written down is so."""
        with self._state:
            ours = [entry for entry in entries if self._hands.has(entry)]
            for place, offsets in offsets_of(ours):
                self._hands.windows[place] = deed(self._hands.windows[place], offsets)

    def commits(self, windows: Mapping[Place, Window]) -> dict[Place, tuple[int, str]]:
        """Offsets and metadata."""
        return commits_of(windows, owner=self._owner)

    def proofs(self, entries: Iterable[Entry]) -> dict[str, Any]:
        """For each topic what proves to a transaction that we are a member of the group that reads it."""
        topics = {entry.place[0] for entry in entries}
        return {
            topic: member.do(lambda consumer: consumer.consumer_group_metadata())
            for topic, member in self.members.items()
            if topic in topics
        }

    def offsets(self, commits: Mapping[Place, tuple[int, str]], proofs: Mapping[str, Any]) -> list[Offsets]:
        """What a transaction commits along."""
        return [
            Offsets({place: commit for place, commit in commits.items() if place[0] == topic}, proof)
            for topic, proof in proofs.items()
        ]

    def _went_through(self, entries: Sequence[Entry], then: Callable[[], object]) -> None:
        self.apply(Window.finish, entries)
        with self._state:
            then()

    def _committed(self, places: Mapping[Place, Any]) -> dict[Place, tuple[int, str]]:
        found: dict[Place, tuple[int, str]] = {}
        for topic, member in self.members.items():
            found |= self._positions.committed(member.group_id, [place for place in places if place[0] == topic])
        return found


def put(consumer: Consumer, windows: Mapping[Place, Window], *, owner: str) -> None:
    """Commit windows as they are. Raises `BrokerUnavailable` if that is not known to be done."""
    wanted = [TopicPartition(*place, *commit) for place, commit in commits_of(windows, owner=owner).items()]
    try:
        committed = consumer.commit(offsets=wanted, asynchronous=False) if wanted else ()
    except KafkaException as error:
        raise translate(error) from error
    for each in committed or ():
        if each.error is not None:
            raise translate(KafkaException(each.error))


def commits_of(windows: Mapping[Place, Window], *, owner: str) -> dict[Place, tuple[int, str]]:
    """Offsets and metadata."""
    return {place: (window.low, window.dump(owner)) for place, window in windows.items()}
