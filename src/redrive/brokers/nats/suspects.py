"""Suspects: found by their marks, run one at a time, each death counted before the next run."""

from dataclasses import replace
from datetime import datetime, timedelta

from redrive.brokers.nats.book import Book, Row, Write
from redrive.brokers.nats.groups import Group, Well
from redrive.brokers.nats.hand import Held, delivery_of, read_message, seq_in, story_key
from redrive.brokers.nats.heading import Stored
from redrive.brokers.nats.intake import PROGRESS
from redrive.brokers.nats.link import Link
from redrive.brokers.nats.parts import whole
from redrive.brokers.nats.reading import get
from redrive.brokers.nats.story import State, Story
from redrive.brokers.process import identity, is_dead
from redrive.core.delivery import Delivery
from redrive.core.marks import GENERATION
from redrive.core.ports import Clock, Options

_MOST = 256  # looked at in one go


class Suspects:
    """The suspects of one group, as one worker sees them."""

    def __init__(self, link: Link, book: Book, group: Group, *, options: Options, clock: Clock) -> None:
        self._link = link
        self._book = book
        self._group = group
        self._options = options
        self._clock = clock
        self._given: dict[str, datetime] = {}  # when each was handed out here, by its key

    async def waiting(self) -> int:
        """How many wait."""
        return sum([len(await self._found(well)) for well in self._group.wells])

    async def take(self, *, lease: timedelta) -> Delivery | None:
        """One, marked durably as running alone; a crash is counted if it was running alone before.

        Those come first whose process has died least often, so that whoever kills process after process does so
        without taking the same neighbour along.
        """
        found = [(well, seq, *one) for well in self._group.wells for seq, one in (await self._found(well)).items()]
        for well, seq, row, story in sorted(found, key=lambda one: (_deaths(one[3]), one[1])):
            if (delivery := await self._take(well, seq, row, story, lease=lease)) is not None:
                return delivery
        return None

    async def _take(self, well: Well, seq: int, row: Row, story: Story, *, lease: timedelta) -> Delivery | None:
        one = await get(self._link, well.stream, seq)
        if one is None:  # its stream does not have it any more
            await self._book.drop({story_key(well, seq): row.revision})
            return None
        if story.state is State.ALONE and not self._is_unheard(story_key(well, seq), story):
            generation = one.heading.get(GENERATION, "")
            story = story.crashed(why=self._why(story), generation=int(generation) if generation.isdecimal() else 0)
        owner, now = self._options.owner, self._clock.now()
        until = now + lease
        taken = replace(story, state=State.ALONE, owner=owner, process=identity(), since=now, until=until, due_at=None)
        (revision,) = await self._book.write([Write(story_key(well, seq), taken.dump(), row.revision)])
        if revision is None:  # somebody was quicker
            return None
        await self._link.say([(taken.reply, PROGRESS)])
        held = Held(well, seq, taken.reply, owner, until, now, taken, revision, is_alone=True, is_marked=True)
        delivery = await self._delivery(held, one)
        if self._clock.now() >= until:  # the server was slow to answer: it has not been run, and that is no crash
            await self._book.write([Write(held.key, taken.parked(State.SUSPECT).dump(), revision)])
            return None
        self._given[held.key] = now
        return delivery

    async def _delivery(self, held: Held, one: Stored) -> Delivery:
        well, now = held.well, held.renewed_at
        body, heading, held.parts = await whole(self._link, well.stream, self._group.queue, one.body, one.heading)
        message, _ = read_message(self._group, well, held.seq, body=body, heading=heading, at=one.at)
        held.is_private = one.subject == self._group.lane
        return delivery_of(self._group, held, message, subject=one.subject, now=now)

    async def _found(self, well: Well) -> dict[int, tuple[Row, Story]]:
        """Those that nobody runs, by their place. A mark without a suspect is removed."""
        marks = await self._book.under(f"suspect.{well.key}", most=_MOST)
        if not marks:
            return {}
        now = self._clock.now()
        rows = await self._book.read([story_key(well, seq_in(key)) for key in marks])
        found: dict[int, tuple[Row, Story]] = {}
        stale: dict[str, int] = {}
        for key, mark in marks.items():
            row = rows.get(story_key(well, seq_in(key)))
            story = Story.load(row.value) if row else None
            if row is None or story is None or story.state not in (State.SUSPECT, State.ALONE):
                stale[key] = mark.revision
            elif (
                story.state is State.SUSPECT
                or self._is_over(story, now)
                or self._is_unheard(story_key(well, seq_in(key)), story)
            ):
                found[seq_in(key)] = (row, story)
        await self._book.drop(stale)
        return found

    def _is_unheard(self, key: str, story: Story) -> bool:
        """Whether it was taken here, and the answer was lost: it has never run."""
        return story.owner == self._options.owner and self._given.get(key) != story.since

    def _is_over(self, story: Story, now: datetime) -> bool:
        obituary = self._options.obituary
        seen = obituary is not None and obituary.owner == story.owner
        return seen or story.until is None or now >= story.until or is_dead(story.process)

    def _why(self, story: Story) -> str:
        obituary = self._options.obituary
        if obituary is not None and obituary.owner == story.owner:
            return obituary.text
        return "its worker died while it ran alone"


def _deaths(story: Story) -> int:
    """How often its process has died, with the last time, which is counted when it is taken."""
    return story.crashes + (story.state is State.ALONE)


async def regain(book: Book, held: Held) -> bool:
    """Whether one that runs alone is still ours, and only an answer was lost; then its revision is known again."""
    row = await book.get(held.key)
    if row is None or held.story is None or not held.is_alone:
        return False
    story = Story.load(row.value)
    if (story.state, story.owner, story.since) != (State.ALONE, held.owner, held.story.since):
        return False
    held.story, held.revision = story, row.revision
    return True
