"""Commits and transactions of one process do not get in each other's way."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Condition
from typing import Any, TypeVar

import pytest

from redrive.brokers.kafka.notes import Noted, Notes
from redrive.brokers.kafka.record import Place, Record
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.transactions import Offsets, Unsure
from redrive.brokers.kafka.window import Window
from redrive.core.errors import BrokerUnavailable

T = TypeVar("T")
HERE: Place = ("orders", 0)


class Cluster:
    """What a transaction, a plain commit and a look at the committed offsets need; nothing is answered at will."""

    group_id = "orders..shop"

    def __init__(self) -> None:
        self.committed_offsets: dict[Place, tuple[int, str]] = {}
        self.answers = True
        self.is_there = True

    def do(self, call: Callable[[Any], T]) -> T:
        return call(self)

    def consumer_group_metadata(self) -> object:
        return self

    def commit(self, *, offsets: Sequence[Any], asynchronous: bool) -> Sequence[Any]:
        assert not asynchronous
        for each in offsets:
            self.committed_offsets[each.topic, each.partition] = (each.offset, each.metadata)
        return ()

    def open(self) -> None:
        if not self.is_there:
            raise BrokerUnavailable("nobody answers")

    def carry_out(self, records: Sequence[Record], *, offsets: Sequence[Offsets]) -> None:
        assert records
        for each in offsets:
            self.committed_offsets |= each.commits
        if not self.answers:
            raise Unsure("no answer")

    def committed(self, group: str, places: Iterable[Place]) -> Mapping[Place, tuple[int, str]]:
        assert group == self.group_id
        return {place: self.committed_offsets[place] for place in places}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def notes(cluster: Any) -> Notes:
    found = Notes(Condition(), pen=cluster, positions=cluster, owner="me")
    found.members["orders"] = cluster
    return found


def offsets(count: int) -> tuple[Share, list[Noted]]:
    share = Share(HERE, Window(0))
    return share, [{share: [number]} for number in range(count)]


RECORDS = [Record("orders.dlq", b"")]


def test_a_transaction_is_known_before_anybody_writes_the_same_windows_again(notes: Notes) -> None:
    share, (only,) = offsets(1)
    seen: list[tuple[bool, int]] = []
    notes.carry_out(only, RECORDS, then=lambda: seen.append((notes.writing.locked(), share.window.low)))

    assert seen == [(True, 1)]


def test_nothing_is_committed_while_a_transaction_is_without_an_answer(cluster: Cluster, notes: Notes) -> None:
    share, (first, second) = offsets(2)
    cluster.answers = cluster.is_there = False
    with pytest.raises(BrokerUnavailable):
        notes.carry_out(first, RECORDS, then=lambda: None)
    before = dict(cluster.committed_offsets)
    with pytest.raises(BrokerUnavailable):
        notes.commit((Window.hand, second))

    assert not notes.is_sure
    assert cluster.committed_offsets == before
    assert share.window.low == 0


def test_what_became_of_a_transaction_without_an_answer_is_looked_up(cluster: Cluster, notes: Notes) -> None:
    share, (first, second) = offsets(2)
    cluster.answers = False
    done: list[str] = []
    with pytest.raises(BrokerUnavailable):
        notes.carry_out(first, RECORDS, then=lambda: done.append("first"))
    notes.commit((Window.hand, second))

    assert done == ["first"]
    assert share.window == Window(1).hand([1])
    assert cluster.committed_offsets[HERE][0] == 1


def test_what_two_calls_have_to_say_of_one_partition_is_one_commit(cluster: Cluster, notes: Notes) -> None:
    share, (first, second) = offsets(2)
    notes.commit((Window.hand, first))
    notes.commit((Window.finish, first), (Window.hand, second))

    assert share.window == Window(1).hand([1])
    assert cluster.committed_offsets[HERE] == (1, share.window.dump("me"))
