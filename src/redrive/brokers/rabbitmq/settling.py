"""Carrying out outcomes: everything that an outcome writes is written and confirmed, then the message is acked.

A process that dies between the two leaves both: the copy and the message. What has one key is one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from redrive.brokers.rabbitmq.entry import Entry, new_id, plain_parcel
from redrive.brokers.rabbitmq.errors import QueueFull
from redrive.brokers.rabbitmq.grid import LONGEST, rounded
from redrive.brokers.rabbitmq.hands import Hold
from redrive.brokers.rabbitmq.letters import letter_parcel
from redrive.brokers.rabbitmq.link import Posting
from redrive.brokers.rabbitmq.names import Place, check
from redrive.brokers.rabbitmq.office import Office
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, DeadLetterQueueFull
from redrive.core.message import Message
from redrive.core.outcome import (
    ACK,
    DONE,
    LOST,
    REPEATED,
    GiveUp,
    RetryLater,
    Settled,
    Settlement,
    SettleStatus,
    as_settlement,
)
from redrive.core.place import DLQ, OUTCOMES, DeadLetterPlace, named
from redrive.core.wire import dump_outcome


@dataclass(slots=True)
class Step:
    """One outcome to be carried out."""

    hold: Hold
    postings: list[Posting]
    due_at: datetime | None = None
    dlq: str = ""

    def refused(self, error: BrokerError) -> Settled:
        """The answer if one of its postings is refused."""
        if isinstance(error, QueueFull) and error.queue == self.dlq:
            return _refusal(DeadLetterQueueFull(str(error)))
        return _refusal(error)


class Settler:
    """Settles for one group."""

    def __init__(
        self, office: Office, place: Place, *, dlq: DeadLetterPlace, freed: Callable[[str | None], None]
    ) -> None:
        self._office = office
        self._place = place
        self._dlq = dlq
        self._freed = freed

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        """One answer per item, in order. Raises `BrokerUnavailable` if nothing was done."""
        settlements = [as_settlement(item) for item in items]
        answers: list[Settled] = []
        steps: dict[int, Step] = {}
        acked: list[Hold] = []
        claimed: dict[int, int] = {}
        for number, item in enumerate(settlements):
            hold = item.delivery.token
            said = self._said(item, claimed)
            answers.append(said or DONE)
            if said is not None:
                continue
            claimed[id(hold)] = number
            if item.outcome is ACK and item.output is None and item.report is None:
                acked.append(hold)
            elif isinstance(step := await self._planned(item, hold), Step):
                steps[number] = step
            else:
                answers[number] = step
        if acked:
            await self._ack(acked)
        if steps:
            for number, answer in zip(steps, await self._carry_out(list(steps.values())), strict=True):
                answers[number] = answer
        for number, item in enumerate(settlements):
            first = claimed.get(id(item.delivery.token), number)
            if first < number:
                answers[number] = REPEATED._replace(due_at=answers[first].due_at)
        return answers

    def _said(self, item: Settlement, claimed: Mapping[int, int]) -> Settled | None:
        """What is to be said of an item that is not to be carried out."""
        hold = item.delivery.token
        if not isinstance(hold, Hold) or hold.place != self._place:
            return LOST
        if id(hold) in claimed:
            return REPEATED
        if (said := _answer(hold)) is not None:
            return said
        why = self._mistake(item)
        return Settled(SettleStatus.REFUSED, why) if why else None

    async def _carry_out(self, steps: Sequence[Step]) -> list[Settled]:
        link = self._office.link
        refusals = iter(await link.publish([posting for step in steps for posting in step.postings]))
        answers: list[Settled] = []
        done: list[Hold] = []
        for step in steps:
            refused = [why for why in [next(refusals) for _ in step.postings] if why is not None]
            if refused:
                answers.append(step.refused(refused[0]))
            elif not step.hold.is_ours:
                step.hold.is_lost = True
                answers.append(LOST)
            else:
                step.hold.answer = DONE._replace(due_at=step.due_at)
                answers.append(step.hold.answer)
                done.append(step.hold)
        await self._ack(done)
        return answers

    async def _ack(self, holds: Sequence[Hold]) -> None:
        for hold in holds:
            hold.answer = hold.answer or DONE
            self._office.hands.let_go(hold)
        await self._office.link.ack([hold.tag for hold in holds])
        for hold in holds:
            self._freed(hold.consumer)

    async def _planned(self, item: Settlement, hold: Hold) -> Step | Settled:
        """The step, or its refusal if its own place cannot be begun: that is not the others' business."""
        try:
            return await self._step(item, hold)
        except BrokerUnavailable:
            raise
        except (BrokerError, ConfigError) as error:
            return _refusal(error)

    async def _step(self, item: Settlement, hold: Hold) -> Step:
        now, entry, topology = self._office.clock.now(), hold.entry, self._office.topology
        step = Step(hold, [])
        if isinstance(item.outcome, RetryLater):
            delay = rounded(item.outcome.delay or NOW) if item.outcome.delay else NOW
            step.due_at = now + delay
            again = entry.failed(item.attempt, trail=item.trail, due_at=step.due_at)
            if delay > LONGEST:
                again = replace(again, until=step.due_at)
            step.postings.append(await topology.posting(self._place, again.parcel(), due_at=step.due_at, now=now))
        elif isinstance(item.outcome, GiveUp) and self._dlq.enabled and item.letter is not None:
            step.dlq = self._dlq.dlq_of(self._place.queue, default=DLQ)
            parcel = letter_parcel(item.letter, dlq=step.dlq, now=now)
            step.postings.append(await topology.to_queue(step.dlq, parcel))
        elif isinstance(item.outcome, GiveUp) and self._dlq.off == "hold":
            held = replace(entry, trail=item.trail or entry.trail, due_at=None, until=None, mark=None)
            step.postings.append(Posting("", self._place.held, held.parcel()))
        if item.output is not None:
            step.postings.append(await self._to(item.output, now))
        if item.report is not None:
            outcomes = named(OUTCOMES, self._place.queue)
            step.postings.append(await self._to(Message("", outcomes, dump_outcome(item.report)), now))
        return step

    async def _to(self, message: Message, now: datetime) -> Posting:
        parcel = plain_parcel(message._replace(id=new_id()), now=now)
        return await self._office.topology.to_queue(message.queue, parcel)

    def _mistake(self, item: Settlement) -> str:
        if item.outcome is ACK and item.output is None:
            return ""
        if isinstance(item.outcome, RetryLater) and item.outcome.delay is None:
            return "a retry needs its final delay"
        if isinstance(item.outcome, GiveUp) and self._dlq.enabled and item.letter is None:
            return "giving up needs a letter"
        if item.output is not None:
            try:
                check(queue=item.output.queue)
                plain_parcel(item.output, now=self._office.clock.now())
            except (ConfigError, ValueError, TypeError) as error:
                return f"output: {error}"
        return ""

    async def release(self, holds: Sequence[Hold]) -> None:
        """Back into the queue, the front of it."""
        for hold in holds:
            hold.is_lost = True
            self._office.hands.let_go(hold)
        sources = dict.fromkeys(hold.source for hold in holds)
        await self._office.link.put_back(
            {source: [hold.tag for hold in holds if hold.source == source] for source in sources}
        )
        for hold in holds:
            self._freed(hold.consumer)

    async def to_suspects(self, hold: Hold, entry: Entry) -> None:
        """Move what nobody is heard of any more to the suspects."""
        hold.is_lost = True
        try:
            await self._office.link.publish_all([Posting("", self._place.suspects, entry.parcel())])
        except BrokerError:
            hold.is_lost = False
            raise
        self._office.hands.let_go(hold)
        await self._office.link.ack([hold.tag])


def _refusal(error: Exception) -> Settled:
    """The answer for what was refused. The error's type comes first: by that refusals are counted."""
    return Settled(SettleStatus.REFUSED, f"{type(error).__name__}: {error}")


def _answer(hold: Hold) -> Settled | None:
    """What is to be said of a delivery that cannot be settled."""
    if hold.answer is not None:
        return REPEATED._replace(due_at=hold.answer.due_at)
    if hold.is_ours:
        return None
    hold.is_lost = True
    return LOST
