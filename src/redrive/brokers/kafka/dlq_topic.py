"""DLQs: what they are called, how they are begun, and in which form letters are written there."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from redrive.brokers.kafka.names import group_reading
from redrive.brokers.kafka.record import Record
from redrive.core.letter import DeadLetter
from redrive.core.place import COLLECTORS, DLQ, OUTCOMES, queue_of
from redrive.core.wire import entry_body, to_embedded, to_fields

ROOM: Final = 262_144
"""By how much a letter, or a retry, may be larger than its message."""
LARGEST: Final = 2_097_152
"""What a message there may have at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DlqTopic:
    """How DLQs are set; a topic that exists stays as it is. `retention` None is for ever.

    `name` is a pattern with `{queue}`, or one name for all queues. Without `replication` there are three copies, or as
    many as there are brokers. The form `fields` leaves the value as it was, byte for byte, and says the rest in
    headers; `embedded` writes the message's own JSON object with one more member, `dlq_metadata`. `group` is what the
    consumer group of collectors is called, if not after each DLQ.
    """

    name: str = DLQ
    partitions: int = 3
    replication: int | None = None
    retention: timedelta | None = timedelta(days=30)
    compression: str = "snappy"
    largest: int = LARGEST
    form: Literal["fields", "embedded"] = "fields"
    group: str | None = None

    def settings(self, queue_largest: int) -> dict[str, str]:
        """The settings of the topic, with room for a letter of the largest message of its queue."""
        # What is no JSON object is embedded as base64.
        grown = queue_largest if self.form == "fields" else queue_largest * 4 // 3
        kept = -1 if self.retention is None else self.retention // timedelta(milliseconds=1)
        return {
            "retention.ms": f"{kept}",
            "retention.bytes": "-1",
            "compression.type": self.compression,
            "max.message.bytes": f"{max(self.largest, grown + ROOM if queue_largest else 0)}",
        }

    def reader(self, topic: str, *, queue: str, group: str) -> str:
        """The consumer group that reads a topic for a group of ours: the queue itself, or its lane."""
        collects = topic == queue and group == COLLECTORS and not queue_of(OUTCOMES, topic)
        return self.group if self.group and collects else group_reading(topic, queue=queue, group=group)

    def record(self, letter: DeadLetter, *, dlq: str, now: datetime) -> Record:
        """A letter as it is written into a DLQ."""
        if self.form == "embedded":
            return Record(dlq, to_embedded(replace(letter, dlq_published_at=now)), (), letter.key)
        return Record(dlq, entry_body(letter), to_fields(letter, dlq_published_at=now), letter.key)
