"""What to do with what was pulled: the new goes on, the rest is looked up first."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from nats.aio.msg import Msg

from redrive.brokers.nats.book import Book, Row, Write
from redrive.brokers.nats.groups import Group, Well, nanos
from redrive.brokers.nats.hand import Held, delivery_of, mark_key, read_message, story_key
from redrive.brokers.nats.heading import Reply, read_reply
from redrive.brokers.nats.link import Link
from redrive.brokers.nats.parts import whole
from redrive.brokers.nats.story import State, Story
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.message import Message

ACK: Final = b"+ACK"
PROGRESS: Final = b"+WPI"
PARKED: Final = timedelta(minutes=5)
"""For how long the server keeps a suspect to itself: it is run by its story; a redelivery is work for nothing."""
_SOON: Final = timedelta(seconds=1)
_LONG: Final = timedelta(hours=1)


def nak(delay: timedelta = NOW) -> bytes:
    """The word that has a message redelivered, at once or later."""
    return b"-NAK" if delay <= NOW else b"-NAK " + json.dumps({"delay": nanos(delay)}).encode()


@dataclass(slots=True)
class Piles:
    """What comes again: to be handed out, to be put aside, to be answered, and stories that tell nothing more."""

    out: list[tuple[Msg, Reply, Story, Write | None]] = field(default_factory=list)
    aside: list[tuple[Msg, Write]] = field(default_factory=list)
    marks: list[Write] = field(default_factory=list)
    words: list[tuple[str, bytes]] = field(default_factory=list)
    blank: dict[str, int] = field(default_factory=dict)


class Intake:
    """Sorts what one worker has pulled.

    A message that comes for the second time was in somebody's hands, unless its story tells why it comes again. Such a
    one is a suspect: marked, and left pending, with a nak that brings it round again should nobody have run it by then.
    """

    def __init__(self, link: Link, book: Book, group: Group, *, owner: str) -> None:
        self._link = link
        self._book = book
        self._group = group
        self._owner = owner
        self.lease = timedelta(seconds=60)

    async def sort(self, well: Well, found: Sequence[Msg], *, now: datetime, asked_at: datetime) -> list[Delivery]:
        """Deliveries from what was pulled, in its order; suspects are put aside."""
        until = asked_at + self.lease
        taken: list[Delivery] = []
        again: list[tuple[Msg, Reply]] = []
        for message in found:
            reply = read_reply(message.reply)
            if reply.delivered > 1:
                again.append((message, reply))
                continue
            held = Held(well, reply.seq, message.reply, self._owner, until, asked_at)
            if message.headers:
                taken.append(await self._delivery(held, message, reply.at, now=now))
            else:  # nothing to be looked up or taken apart
                plain = Message(f"{well.stream.name}:{reply.seq}", self._group.queue, message.data, (), None, reply.at)
                taken.append(Delivery(plain, self._group.name, now, token=held))
        if again:
            taken += await self._look_up(well, again, now=now, until=until)
        return taken

    async def hand_back(self, well: Well, found: Sequence[Msg]) -> None:
        """Return what was pulled for nobody; it was not run."""
        replies = [read_reply(message.reply) for message in found]
        fresh = [(message, reply) for message, reply in zip(found, replies, strict=True) if reply.delivered == 1]
        writes = [
            Write(story_key(well, reply.seq), Story(state=State.RELEASED, reply=message.reply).dump(), 0)
            for message, reply in fresh
        ]
        if writes:
            await self._book.write(writes)
            await self._link.say([(message.reply, nak()) for message, _ in fresh])

    async def _look_up(
        self, well: Well, again: Sequence[tuple[Msg, Reply]], *, now: datetime, until: datetime
    ) -> list[Delivery]:
        rows = await self._book.recall({story_key(well, reply.seq): reply.delivered for _, reply in again})
        piles = Piles()
        for message, reply in again:
            self._judge(piles, well, message, reply, rows.get(story_key(well, reply.seq)), now=now)
        await self._put_aside(piles, well)
        revisions = iter(await self._book.write([write for *_, write in piles.out if write is not None]))
        await self._book.drop(piles.blank)
        taken: list[Delivery] = []
        for message, reply, story, write in piles.out:
            revision = next(revisions) if write is not None else 0
            if revision is None:  # somebody else has just decided about it
                piles.words.append((message.reply, nak(_SOON)))
                continue
            held = Held(well, reply.seq, message.reply, self._owner, until, now)
            if write is not None:
                held.story, held.revision = story, revision
            taken.append(await self._delivery(held, message, reply.at, now=now))
        if piles.words:
            await self._link.say(piles.words)
        return taken

    async def _put_aside(self, piles: Piles, well: Well) -> None:
        """The story first: a mark alone says nothing, and a suspect without one comes round again."""
        revisions = await self._book.write([write for _, write in piles.aside])
        for (message, _), revision in zip(piles.aside, revisions, strict=True):
            if revision is None:  # whoever has it has just decided about it
                piles.words.append((message.reply, nak(_SOON)))
            else:
                piles.marks.append(Write(mark_key(well, read_reply(message.reply).seq), b""))
                piles.words.append((message.reply, nak(PARKED)))
        await self._book.write(piles.marks)

    def _judge(self, piles: Piles, well: Well, message: Msg, reply: Reply, row: Row | None, *, now: datetime) -> None:
        """Put a message that comes again on the pile where it belongs."""
        key, revision = story_key(well, reply.seq), row.revision if row else 0
        known = Story.load(row.value) if row else Story(state=State.OUT, reply=message.reply)
        story = replace(known, reply=message.reply)
        if story.state in (State.RETRY, State.RELEASED):
            given = replace(story, state=State.OUT, owner=self._owner)
            if (left := (story.due_at or now) - now) > NOW:
                piles.words.append((message.reply, nak(left)))
            elif _is_blank(story):
                piles.blank[key] = revision
                piles.out.append((message, reply, story, None))
            else:
                piles.out.append((message, reply, given, Write(key, given.dump(), revision)))
            return
        if story.state is State.OUT:
            piles.aside.append((message, Write(key, story.parked(State.SUSPECT).dump(), revision)))
        elif story.state is State.HELD:
            piles.words.append((message.reply, nak(_LONG)))
        else:
            piles.marks.append(Write(mark_key(well, reply.seq), b""))
            piles.words.append((message.reply, nak(PARKED)))

    async def _delivery(self, held: Held, message: Msg, at: datetime, *, now: datetime) -> Delivery:
        stream = held.well.stream
        body, heading, held.parts = await whole(
            self._link, stream, self._group.queue, message.data, message.headers or {}
        )
        found, due_at = read_message(self._group, held.well, held.seq, body=body, heading=heading, at=at)
        held.is_private = message.subject == self._group.lane
        delivery = delivery_of(self._group, held, found, subject=message.subject, now=now)
        return delivery if due_at is None or held.story else delivery._replace(due_at=due_at)


def _is_blank(story: Story) -> bool:
    """Whether a story tells nothing once the message is out again."""
    return not (story.failures or story.crashes or story.trail or story.due_at)
