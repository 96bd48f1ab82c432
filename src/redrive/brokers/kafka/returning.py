"""Sending letters back: once per key, in one transaction with the ledger that remembers it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from redrive.brokers.kafka.book import Change, Row, Rows
from redrive.brokers.kafka.entry import sent_back
from redrive.brokers.kafka.joining import begin
from redrive.brokers.kafka.lane import partition_in
from redrive.brokers.kafka.names import check_topic, lane_of
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.record import Record, to_millis
from redrive.brokers.kafka.transactions import Placed
from redrive.core.marks import write_marks
from redrive.core.message import without_reserved
from redrive.core.redrive import SendBack


def sent_key(item: SendBack) -> str:
    """Under which key the ledger remembers that a letter was sent back."""
    return f"sent:{item.queue}:{item.once_key}"


def send_back(office: Office, items: Sequence[SendBack], *, leaving: Mapping[str, Row] | None = None) -> Sequence[str]:
    """Send letters back; return message ids in order, the same when repeated.

    `leaving` are rows written in the same step: what has left a DLQ.
    """
    for item in items:
        check_topic(queue=item.queue, group=item.group)
    records = {sent_key(item): _record(office, item) for item in items}

    def decide(rows: Rows) -> Change | None:
        new = {key: record for key, record in records.items() if key not in rows}
        struck = {key: row for key, row in (leaving or {}).items() if key not in rows}
        if not new and not struck:
            return None

        def then(placed: Sequence[Placed]) -> dict[str, Row | None]:
            return {key: Row(where.id.encode()) for key, where in zip(new, placed, strict=True)}

        return Change(struck, list(new.values()), then=then)

    if items:
        office.ledger.change(decide)
    rows = office.ledger.rows
    return [rows[sent_key(item)].value.decode() for item in items]


def _record(office: Office, item: SendBack) -> Record:
    """A letter on its way: to its group's lane, or into the queue, where no group speaks for it."""
    if item.group is None:
        office.topics.ensure(item.queue)
        headers = (*without_reserved(item.headers), *write_marks(item))
        return Record(item.queue, item.body, headers, item.key, timestamp=to_millis(office.clock.now()))
    begin(office, item.queue, item.group)
    entry = sent_back(item)
    lane = lane_of(item.queue, item.group)
    partition = partition_in(office.topics.ensure(lane), entry.message._replace(id=item.once_key), timedelta())
    return entry.for_lane(lane, partition, group=item.group)._replace(timestamp=to_millis(office.clock.now()))
