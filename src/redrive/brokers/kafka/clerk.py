"""What is written when an outcome is carried out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from redrive.brokers.kafka.book import Book, Row
from redrive.brokers.kafka.entry import Entry, key_text
from redrive.brokers.kafka.lane import partition_in
from redrive.brokers.kafka.names import check_topic, lane_of
from redrive.brokers.kafka.record import Record, plain_record
from redrive.brokers.kafka.topics import Topics
from redrive.core.duration import NOW
from redrive.core.errors import ConfigError
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater, Settlement
from redrive.core.place import OUTCOMES, DeadLetterPlace, named
from redrive.core.ports import Clock
from redrive.core.wire import bounded, dump_outcome

_SMALL: Final = 4096
"""What the fields of a letter may take if the DLQ has refused it as it is."""

SUSPECT: Final = "suspect:"
HELD: Final = "held:"


@dataclass(slots=True)
class Step:
    """One outcome to be carried out: records, and rows of the group's book."""

    item: Settlement
    entry: Entry
    records: list[Record]
    rows: dict[str, Row]
    due_at: datetime | None = None
    smaller: bool = False


class Clerk:
    """Writes for one group. Every call may ask the cluster for topics, and begin them."""

    def __init__(self, topics: Topics, book: Book, *, queue: str, group: str, clock: Clock) -> None:
        self._topics = topics
        self._book = book
        self._queue = queue
        self._group = group
        self._lane = lane_of(queue, group)
        self._clock = clock

    def mistake(self, item: Settlement, place: DeadLetterPlace) -> str:
        """Why an item cannot be carried out; empty if nothing is wrong with it."""
        if isinstance(item.outcome, RetryLater) and item.outcome.delay is None:
            return "a retry needs its final delay"
        if isinstance(item.outcome, GiveUp) and place.enabled and item.letter is None:
            return "giving up needs a letter"
        if item.output is not None:
            try:
                check_topic(queue=item.output.queue)
            except ConfigError as error:
                return f"output: {error}"
        return ""

    def steps(self, items: Iterable[tuple[Settlement, Entry]], place: DeadLetterPlace) -> list[Step]:
        """Everything that moves with outcomes which are told together: they share their instant."""
        now = self._clock.now()
        return [self.step(item, entry, place, now=now) for item, entry in items]

    def step(
        self,
        item: Settlement,
        entry: Entry,
        place: DeadLetterPlace,
        *,
        now: datetime | None = None,
        smaller: bool = False,
    ) -> Step:
        """Everything that moves with an outcome. With `smaller`, a letter leaves out what it can."""
        now = now or self._clock.now()
        step = Step(item, entry, [], {}, smaller=smaller)
        if isinstance(item.outcome, RetryLater):
            step.due_at = now + (item.outcome.delay or NOW)
            again = entry.failed(item.attempt, trail=item.trail, due_at=step.due_at)
            step.records.append(self.for_lane(again, now=now))
        elif isinstance(item.outcome, GiveUp) and place.off == "hold":
            held = replace(entry, trail=item.trail or entry.trail, due_at=None)
            step.rows[f"{HELD}{entry.message.id}"] = row_of(held)
        elif isinstance(item.outcome, GiveUp) and place.enabled and item.letter is not None:
            dlq = place.dlq_of(self._queue, default=self._topics.dlq.name)
            self._topics.ensure_dlq(dlq, queue=self._queue)
            letter = bounded(item.letter, limit=_SMALL) if smaller else item.letter
            step.records.append(self._topics.dlq.record(letter, dlq=dlq, now=now))
        if item.output is not None or item.report is not None:
            step.records.extend(self._along(item, now))
        return step

    def for_lane(self, entry: Entry, *, now: datetime) -> Record:
        """A copy that waits in the lane until it is due."""
        delay = NOW if entry.due_at is None else entry.due_at - now
        partition = partition_in(self._topics.ensure(self._lane), entry.message, delay)
        return entry.for_lane(self._lane, partition, group=self._group)

    def all_records(self, steps: Sequence[Step]) -> list[Record]:
        """What several steps write, the rows of the book included."""
        rows = [self._book.record(key, row) for step in steps for key, row in step.rows.items()]
        return [record for step in steps for record in step.records] + rows

    def _along(self, item: Settlement, now: datetime) -> Iterator[Record]:
        if item.output is not None:
            self._topics.ensure(item.output.queue)
            yield plain_record(item.output, now=now)
        if item.report is not None:
            outcomes = named(OUTCOMES, self._queue)
            self._topics.ensure(outcomes)
            yield plain_record(Message("", outcomes, dump_outcome(item.report)), now=now)


def row_of(entry: Entry, **more: Any) -> Row:
    """A message in the book."""
    return Row(entry.message.body, entry.headers(key=key_text(entry.message.key), **more))
