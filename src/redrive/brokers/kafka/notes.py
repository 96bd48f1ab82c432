"""What a member writes down about its partitions: in plain commits, and in transactions with what takes their place.

Plain commits are made by the thread that reads, which also hears of rebalances: so none can come too late. A
transaction is not its business; who takes a partition away, or makes a plain commit, waits for one that is under way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Condition, Lock
from typing import Any, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from redrive.brokers.kafka.errors import translate
from redrive.brokers.kafka.positions import Positions
from redrive.brokers.kafka.record import Place, Record
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.transactions import Offsets, Transactions, Unsure
from redrive.brokers.kafka.window import Window
from redrive.core.errors import BrokerUnavailable

T = TypeVar("T")

Deed = Callable[[Window, Sequence[int]], Window]
Noted = Mapping[Share, Sequence[int]]
"""Offsets by partition."""
Note = tuple[Deed, Noted]
"""What has become of them."""


class Member(Protocol):
    """Who reads a topic, in a consumer group of its own."""

    @property
    def group_id(self) -> str: ...
    def do(self, call: Callable[[Consumer], T]) -> T: ...


class Notes:
    """The commits of one process for one group. Safe for threads; `carry_out` is called by one only."""

    def __init__(self, state: Condition, *, pen: Transactions, positions: Positions, owner: str) -> None:
        self._state = state
        self._pen = pen
        self._positions = positions
        self._owner = owner
        self._unsure: tuple[Mapping[Place, tuple[int, str]], Callable[[], None]] | None = None
        self.members: dict[str, Member] = {}
        self.writing = Lock()
        self._resolving = Lock()
        self._transacting = False

    @property
    def is_sure(self) -> bool:
        """Whether no transaction is without an answer."""
        return self._unsure is None

    @property
    def is_free(self) -> bool:
        """Whether a plain commit need not wait for a transaction."""
        return self._unsure is None and not self._transacting

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Nobody else writes; what it changes is to be known before it ends, or the next one writes what was before."""
        with self.writing:
            self._transacting = True
            try:
                yield
            finally:
                self._transacting = False

    def commit(self, *wanted: Note) -> None:
        """Write down what has become of messages. Raises `BrokerUnavailable` if that is not known to be done."""
        self.resolve()
        for topic, member in self.members.items():
            some = [
                (deed, {share: found[share] for share in found if share.place[0] == topic}) for deed, found in wanted
            ]
            if any(found for _, found in some):
                member.do(partial(self._commit, some))

    def _commit(self, wanted: Sequence[Note], consumer: Consumer) -> None:
        with self.writing:  # not beside a transaction, which would not know of it
            if self._unsure is not None:
                raise BrokerUnavailable("kafka: a transaction has not been answered yet")
            with self._state:
                after = self.after(*wanted)
            put(consumer, after, owner=self._owner)
            self.apply(*wanted)

    def carry_out(self, found: Noted, records: Sequence[Record], *, then: Callable[[], object]) -> None:
        """Write down that these are done, with the records that take their place, and do `then`.

        Raises `Refused`, and `BrokerUnavailable`: after it, who asks again hears what has become of it.
        """
        self.resolve()
        proofs = self.proofs(found)
        with self.transaction():
            with self._state:
                commits = self.commits(self.after((Window.finish, found)))
            try:
                self._pen.carry_out(records, offsets=self.offsets(commits, proofs))
            except Unsure:
                self._unsure = (commits, lambda: self._went_through(found, then))
            else:
                self._went_through(found, then)
        if self._unsure is not None:
            self.resolve()
            raise BrokerUnavailable("kafka: a transaction was not answered; ask again for what has become of it")

    def resolve(self) -> None:
        """Find out what became of an unanswered transaction. Raises `BrokerUnavailable` while nobody knows."""
        if not self.is_sure:
            with self._resolving:
                self._resolve()

    def _resolve(self) -> None:
        if self._unsure is None:
            return
        commits, went_through = self._unsure
        self._pen.open()
        found = self._committed(commits)
        with self.writing:
            if all(found.get(place) == commit for place, commit in commits.items()):
                went_through()
            self._unsure = None

    def after(self, *wanted: Note) -> dict[Place, Window]:
        """What the windows of these offsets will be. Raises `BrokerUnavailable` if one is no longer ours."""
        windows: dict[Share, Window] = {}
        for deed, found in wanted:
            for share, offsets in found.items():
                windows[share] = deed(windows.get(share, share.window), offsets)
        if not all(share.is_ours for share in windows):
            raise BrokerUnavailable("kafka: a partition has passed to another member")
        return {share.place: window for share, window in windows.items()}

    def apply(self, *wanted: Note) -> None:
        """What was written down is so."""
        with self._state:
            for deed, found in wanted:
                for share, offsets in found.items():
                    share.window = deed(share.window, offsets)

    def commits(self, windows: Mapping[Place, Window]) -> dict[Place, tuple[int, str]]:
        """Offsets and metadata."""
        return commits_of(windows, owner=self._owner)

    def proofs(self, found: Noted) -> dict[str, Any]:
        """For each topic what proves to a transaction that we are a member of the group that reads it."""
        topics = {share.place[0] for share in found}
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

    def _went_through(self, found: Noted, then: Callable[[], object]) -> None:
        self.apply((Window.finish, found))
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
