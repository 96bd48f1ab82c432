"""What a worker has in hand: the token of a delivery."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from redrive.brokers.nats.groups import Group, Well
from redrive.brokers.nats.heading import DUE, SCHEDULER, instant_of, message_of
from redrive.brokers.nats.names import later_of
from redrive.brokers.nats.story import Story
from redrive.core.delivery import Delivery
from redrive.core.marks import read_marks
from redrive.core.message import Message, without_reserved
from redrive.core.outcome import Settled


@dataclass(slots=True, eq=False)
class Held:
    """One handing-over. `until` is when the server gives the message to somebody else, unless it is renewed.

    The server itself does not ask who acks: this is the fence.
    """

    well: Well
    seq: int
    reply: str
    owner: str
    until: datetime
    renewed_at: datetime
    story: Story | None = None
    revision: int = 0
    parts: tuple[int, ...] = ()  # of the message, beside it in the stream
    is_private: bool = False  # it came by the lane, so nobody else has it
    is_alone: bool = False
    is_marked: bool = False  # as a suspect, in the bucket
    is_gone: bool = False
    settled: Settled | None = None
    planned: Story | None = None  # the same when the call that writes it is repeated

    @property
    def key(self) -> str:
        """Of its story, in the bucket."""
        return story_key(self.well, self.seq)

    def is_lost(self, now: datetime) -> bool:
        """Whether it has passed to somebody else, or may have."""
        if now >= self.until:
            self.is_gone = True
        return self.is_gone


def story_key(well: Well, seq: int) -> str:
    """The key of a story."""
    return f"story.{well.key}.{seq}"


def mark_key(well: Well, seq: int) -> str:
    """The key that makes a suspect easy to find."""
    return f"suspect.{well.key}.{seq}"


def seq_in(key: str) -> int:
    """The place in the stream of which a key speaks."""
    return int(key.rpartition(".")[2])


def delivery_of(group: Group, held: Held, message: Message, *, subject: str, now: datetime) -> Delivery:
    """What a worker gets. Marks are honoured in the lane only, where nobody but us should write."""
    story = held.story
    if story is None and not message.headers:
        return Delivery(message, group.name, now, token=held)
    marks = read_marks(message.headers, queue=group.queue, group=group.name) if subject == group.lane else None
    clean = message._replace(headers=without_reserved(message.headers), origin=marks.origin if marks else "")
    return Delivery(
        clean,
        group.name,
        now,
        story.failures if story else 0,
        story.crashes if story else 0,
        marks.generation if marks else 0,
        marks.letter_id if marks else None,
        marks.attempts_allowed if marks else None,
        story.first_attempt_at if story else None,
        story.trail if story else b"",
        held.is_alone,
        None,
        held,
        story.due_at if story and not held.is_alone else None,
    )


def read_message(
    group: Group, well: Well, seq: int, *, body: bytes, heading: Mapping[str, str] | None, at: datetime
) -> tuple[Message, datetime | None]:
    """The message at a place, and when it was due if it was published with a delay."""
    name = f"{well.stream.name}:{seq}"
    if not heading:
        return Message(name, group.queue, body, (), None, at), None
    due_at = None
    scheduler = heading.get(SCHEDULER, "")
    if scheduler.startswith(later_of(group.queue, "")):
        name, due_at = f"{well.stream.name}:{scheduler.rpartition('.')[2]}", instant_of(heading.get(DUE))
    return message_of(group.queue, name=name, body=body, heading=heading, at=at), due_at
