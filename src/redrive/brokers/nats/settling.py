"""Carrying out outcomes: first what is to be written, confirmed; then the word that lets the message go."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from redrive.brokers.nats.book import Book, Row, Write
from redrive.brokers.nats.errors import WRONG_LAST, Refused
from redrive.brokers.nats.groups import Group
from redrive.brokers.nats.hand import Held, mark_key
from redrive.brokers.nats.heading import MSG_ID, read_reply, terms_of, write_heading
from redrive.brokers.nats.intake import ACK, nak
from redrive.brokers.nats.letters import letter_for
from redrive.brokers.nats.link import Letter, Link, Published
from redrive.brokers.nats.names import check_subject
from redrive.brokers.nats.reading import delete
from redrive.brokers.nats.story import State, Story
from redrive.brokers.nats.streams import Streams
from redrive.brokers.nats.suspects import regain
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, DeadLetterError
from redrive.core.message import Message, without_reserved
from redrive.core.outcome import DONE, LOST, GiveUp, RetryLater, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.place import DLQ, OUTCOMES, named
from redrive.core.ports import Clock, Options
from redrive.core.redrive import RedriveOutcome
from redrive.core.wire import dump_outcome

_FOR_LONG: Final = timedelta(hours=1)


@dataclass(slots=True)
class Work:
    """What one outcome asks for: letters and a story first, a word last."""

    place: int
    held: Held
    word: bytes = ACK
    answer: Settled = DONE
    letters: list[Letter] = field(default_factory=list)
    story: Story | None = None


class Settling:
    """Settles for one worker. Every step may be taken again: letters are known by their ids, stories by their bytes."""

    def __init__(
        self, link: Link, book: Book, streams: Streams, group: Group, *, options: Options, clock: Clock, strict: bool
    ) -> None:
        self._link = link
        self._book = book
        self._streams = streams
        self._group = group
        self._options = options
        self._clock = clock
        self._strict = strict

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        """One answer per item, in order. Raises `BrokerUnavailable`; then the same items can be settled again."""
        answers: list[Settled | None] = [None] * len(items)
        now = self._clock.now()
        works: list[Work] = []
        first: dict[int, int] = {}  # an item may stand twice in one call
        for place, item in enumerate(items):
            held = (item if isinstance(item, Delivery) else item.delivery).token
            if not isinstance(held, Held) or held.owner != self._options.owner or held.well not in self._group.wells:
                answers[place] = LOST
            elif held.settled is not None:
                answers[place] = held.settled._replace(status=SettleStatus.REPEATED)
            elif held.is_lost(now):
                answers[place] = LOST
            elif id(held) not in first:
                first[id(held)] = place
                if isinstance(item, Delivery) and not held.is_alone:
                    works.append(Work(place, held))
                else:
                    await self._add(works, answers, place, as_settlement(item), held)
        for work in await self._carry_out(works, answers):
            answers[work.place] = work.held.settled = work.answer
        return [self._told(answer, item) for answer, item in zip(answers, items, strict=True)]

    def _told(self, answer: Settled | None, item: Settlement | Delivery) -> Settled:
        if answer is not None:
            return answer
        held: Held = (item if isinstance(item, Delivery) else item.delivery).token
        if held.settled is not None:
            return held.settled._replace(status=SettleStatus.REPEATED)
        return LOST if held.is_gone else Settled(SettleStatus.REFUSED, "the same was refused in this call")

    async def _add(
        self, works: list[Work], answers: list[Settled | None], place: int, item: Settlement, held: Held
    ) -> None:
        try:
            works.append(await self._plan(place, item, held))
        except BrokerUnavailable:
            raise
        except (BrokerError, ConfigError, DeadLetterError) as error:
            answers[place] = refusal(error)

    # ---------------------------------------------------------------------------------------------- planning

    async def _plan(self, place: int, item: Settlement, held: Held) -> Work:
        work = Work(place, held)
        story = held.story or Story(state=State.OUT, reply=held.reply)
        if isinstance(item.outcome, RetryLater):
            if item.outcome.delay is None:
                raise BrokerError("a retry needs its delay")
            if held.planned is None:
                held.planned = story.failed(item, due_at=self._clock.now() + item.outcome.delay)
            work.story, work.word = held.planned, nak(item.outcome.delay)
            work.answer = Settled(SettleStatus.DONE, due_at=held.planned.due_at)
            return work
        if isinstance(item.outcome, GiveUp):
            await self._give_up(work, item, story)
        elif item.output is not None:
            work.letters.append(await self._output(item.output, held))
        if item.report is not None:
            work.letters.append(await self._report(item.report))
        return work

    async def _give_up(self, work: Work, item: Settlement, story: Story) -> None:
        dlq = self._options.dlq
        if dlq.enabled:
            if item.letter is None:
                raise DeadLetterError("a message that is given up needs its letter")
            name = dlq.dlq_of(self._group.queue, default=DLQ)
            stream = await self._streams.ensure_dlq(name, queue=self._group.queue, lease=self._options.lease)
            now, strict = self._clock.now(), self._strict
            made = await letter_for(self._link, item.letter, stream=stream, dlq=name, strict=strict, now=now)
            work.letters.append(made)
        elif dlq.off == "hold":
            work.story = replace(story.parked(State.HELD), trail=item.trail or story.trail)
            work.word = nak(_FOR_LONG)

    async def _output(self, output: Message, held: Held) -> Letter:
        check_subject(queue=output.queue)
        await self._streams.ensure(output.queue)
        once = f"{held.well.stream.name}:{held.seq}:{self._group.name}:output"
        heading = write_heading(without_reserved(output.headers), {**terms_of(output), MSG_ID: once})
        return Letter(output.queue, output.body, heading)

    async def _report(self, report: RedriveOutcome) -> Letter:
        queue = named(OUTCOMES, self._group.queue)
        await self._streams.ensure(queue)
        once = f"{report.letter_id}:{report.generation}:{report.succeeded}"
        return Letter(queue, dump_outcome(report), {MSG_ID: once})

    # ------------------------------------------------------------------------------------------- carrying out

    async def _carry_out(self, works: list[Work], answers: list[Settled | None]) -> list[Work]:
        works = await self._write_stories(works, answers)
        works = await self._publish(works, answers)
        if self._options.moves:
            works = await self._move(works, answers)
        await self._say(works)
        for held in [work.held for work in works if work.word == ACK and work.held.parts]:
            if held.is_private or self._options.moves:
                for part in held.parts:
                    await delete(self._link, held.well.stream, part)
        ended = [work.held for work in works if work.story is None and work.held.story is not None]
        await self._book.drop({held.key: held.revision for held in ended})
        marked = [work.held for work in works if work.held.is_marked]
        await self._book.erase([mark_key(held.well, held.seq) for held in marked])
        return works

    async def _write_stories(self, works: list[Work], answers: list[Settled | None]) -> list[Work]:
        """Whoever runs alone must still be the one in the book; a retry is safe there before its nak."""
        writes = []
        for work in works:
            held = work.held
            if work.story is not None:
                writes.append((work, Write(held.key, work.story.dump(), held.revision)))
            elif held.is_alone and held.story is not None:
                fenced = replace(held.story, state=State.OUT, until=None)
                writes.append((work, Write(held.key, fenced.dump(), held.revision)))
        if not writes:
            return works
        lost = set()
        for (work, write), written in zip(writes, await self._book.write([one for _, one in writes]), strict=True):
            revision = written
            if revision is None and await regain(self._book, work.held):
                (revision,) = await self._book.write([write._replace(after=work.held.revision)])
            if revision is None:
                work.held.is_gone = True
                answers[work.place] = LOST
                lost.add(work.place)
            elif work.story is None:
                work.held.revision = revision
                work.held.is_alone = False  # the book says so: it is not fenced twice
            elif work.story.state is State.RETRY:  # if it comes to us next, nobody has had it in between
                turn = read_reply(work.held.reply).delivered + 1
                self._book.remember(work.held.key, Row(write.value, revision), turn=turn)
        return [work for work in works if work.place not in lost]

    async def _publish(self, works: list[Work], answers: list[Settled | None]) -> list[Work]:
        letters = [letter for work in works for letter in work.letters]
        if not letters:
            return works
        said = iter(await self._link.publish(letters))
        kept = []
        for work in works:
            trouble = [one for one in [next(said) for _ in work.letters] if not _is_written(one)]
            if not trouble:
                kept.append(work)
            else:
                self._streams.forget()  # perhaps a stream is not there any more
                answers[work.place] = refusal(trouble[0])
        return kept

    async def _move(self, works: list[Work], answers: list[Settled | None]) -> list[Work]:
        """An ack takes the message from the queue, for everybody; one that has left was somebody else's."""
        kept = []
        for work in works:
            held = work.held
            if work.word != ACK or await delete(self._link, held.well.stream, held.seq):
                kept.append(work)
            else:
                held.is_gone = True
                answers[work.place] = LOST
        return kept

    async def _say(self, works: list[Work]) -> None:
        """The server takes words in the order in which they come: the answer to the last is an answer to all."""
        for well in self._group.wells:
            words = [(work.held.reply, work.word) for work in works if work.held.well is well]
            if words:
                await self._link.confirm(words)


def refusal(error: Published | Exception) -> Settled:
    """The answer for what was refused. The error's type comes first: by that refusals are counted."""
    return Settled(SettleStatus.REFUSED, f"{type(error).__name__}: {error}")


def _is_written(answer: Published | Exception) -> bool:
    """Also if it was written before: the server lets no second one in."""
    return isinstance(answer, Published) or (isinstance(answer, Refused) and answer.code == WRONG_LAST)
