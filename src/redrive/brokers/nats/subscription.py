"""One worker's hold on a group."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from redrive.brokers.nats import alive
from redrive.brokers.nats.book import Write
from redrive.brokers.nats.groups import Group, Well
from redrive.brokers.nats.hand import Held
from redrive.brokers.nats.heading import read_reply
from redrive.brokers.nats.housekeeping import Housekeeping
from redrive.brokers.nats.intake import PARKED, PROGRESS, Intake, nak
from redrive.brokers.nats.office import Office
from redrive.brokers.nats.pull import Pull
from redrive.brokers.nats.settling import Settling
from redrive.brokers.nats.story import State, Story
from redrive.brokers.nats.suspects import Suspects, regain
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.outcome import Settled, Settlement
from redrive.core.ports import Options

_SLICE: Final = timedelta(seconds=1)
"""For how long a request waits at the server: a pause, or a lost one, is noticed in time."""
_IDLE: Final = timedelta(seconds=1)
_BEATS: Final = timedelta(seconds=5)
_AT_ONCE: Final = 50


class NatsSubscription:
    """The `Subscription` of the NATS broker."""

    def __init__(self, office: Office, group: Group, *, options: Options) -> None:
        link, book, terms = office.link, office.book, office.address.terms
        self._office = office
        self._group = group
        self._options = options
        self._pulls = [Pull(link, well, clock=office.clock) for well in group.wells]
        self._intake = Intake(link, book, group, owner=options.owner)
        self._intake.lease = options.lease
        self._suspects = Suspects(link, book, group, options=options, clock=office.clock)
        self._settling = Settling(
            link, book, office.streams, group, options=options, clock=office.clock, strict=terms.strict
        )
        self._house = Housekeeping(office, group, options=options)
        self._hand: set[Held] = set()
        self._pulling = asyncio.Lock()
        self._alone = asyncio.Lock()
        self._pulled_at = datetime.min.replace(tzinfo=office.clock.now().tzinfo)
        self._lane_at = self._pulled_at
        self._told: tuple[str | None, datetime] | None = None
        self._open = True

    @property
    def incarnation(self) -> str:
        return self._group.incarnation

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        clock = self._office.clock
        ends_at = clock.now() + wait
        while limit > 0:
            left = max(ends_at - clock.now(), NOW)
            if await self._office.pauses.why(self._group) is not None:
                if left <= NOW:
                    return ()
                await clock.sleep(min(left, _SLICE))
                continue
            taken, some = await self._pull(limit, wait=min(left, _SLICE))
            if taken or (not some and clock.now() >= ends_at):
                return taken
        return ()

    async def fetch_suspect(self) -> Delivery | None:
        if await self._office.pauses.why(self._group) is not None:
            return None
        delivery = await self._suspects.take(lease=self._intake.lease)
        if delivery is not None:
            self._hand.add(delivery.token)
        return delivery

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        if not items:
            return ()
        async with self._turn([item if isinstance(item, Delivery) else item.delivery for item in items]):
            answers = await self._settling.settle(items)
        for item in items:
            held = (item if isinstance(item, Delivery) else item.delivery).token
            if isinstance(held, Held) and (held.settled is not None or held.is_gone):
                self._hand.discard(held)
        return answers

    async def extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        async with self._turn(deliveries):
            return await self._extend(deliveries)

    async def _extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        now, lease = self._office.clock.now(), self._intake.lease
        lost: list[Delivery] = []
        due: list[Delivery] = []
        for delivery in deliveries:
            held = delivery.token
            if not self._is_mine(held) or held.settled is not None or held.is_lost(now):
                lost.append(delivery)
            elif now - held.renewed_at >= lease / 6:
                due.append(delivery)
        taken = await self._renew_alone([each for each in due if each.token.is_alone], until=now + lease)
        lost += taken
        renewed = [each.token for each in due if not each.token.is_gone]
        if renewed:
            await self._office.link.say([(held.reply, PROGRESS) for held in renewed])
        for held in renewed:
            held.renewed_at, held.until = now, now + lease
        return lost

    async def _renew_alone(self, deliveries: Sequence[Delivery], *, until: datetime) -> list[Delivery]:
        """Those that run alone have their lease in the book too; return those that somebody else has."""
        lost = []
        for delivery in deliveries:
            held: Held = delivery.token
            assert held.story is not None  # noqa: S101 - it was read when it was taken
            story = replace(held.story, until=until)
            (revision,) = await self._office.book.write([Write(held.key, story.dump(), held.revision)])
            if revision is None and await regain(self._office.book, held):
                (revision,) = await self._office.book.write([Write(held.key, story.dump(), held.revision)])
            if revision is None:
                held.is_gone = True
                lost.append(delivery)
            else:
                held.story, held.revision = story, revision
        return lost

    async def release(self, deliveries: Sequence[Delivery]) -> None:
        async with self._turn(deliveries):
            await self._release(deliveries)

    async def _release(self, deliveries: Sequence[Delivery]) -> None:
        now = self._office.clock.now()
        mine = [each.token for each in deliveries if self._is_mine(each.token)]
        held = [one for one in mine if one.settled is None and not one.is_lost(now)]
        if not held:
            return
        writes = []
        for one in held:
            story = one.story or Story(state=State.OUT, reply=one.reply)
            parked = story.parked(State.SUSPECT if one.is_alone else State.RELEASED)
            writes.append(Write(one.key, parked.dump(), one.revision))
        revisions = await self._office.book.write(writes)
        kept = [one for one, revision in zip(held, revisions, strict=True) if revision is not None]
        words = [(one.reply, nak(PARKED if one.is_alone else NOW)) for one in kept]
        if words:
            await self._office.link.say(words)
        for one in held:
            one.is_gone = True
            self._hand.discard(one)

    async def heartbeat(self, *, paused: str | None = None) -> int:
        now = self._office.clock.now()
        if self._told is None or self._told[0] != paused or now - self._told[1] >= _BEATS:
            await alive.beat(
                self._office.book, self._group, options=self._options, clock=self._office.clock, paused=paused
            )
            self._told = (paused, now)
        pending = 0
        for pull in self._pulls:
            info = await self._house.look(pull.well)
            self._intake.lease = min(self._options.lease, _lease_in(info))
            pending += info["num_ack_pending"]
            others = info["num_ack_pending"] - self._in_hand(pull.well, now=now)
            if others > 0 and now - self._pulled_at >= _IDLE:
                await self._reap(pull, others)
        return await self._suspects.waiting() if pending else 0

    async def aclose(self) -> None:
        if not self._open:
            return
        self._open = False
        with contextlib.suppress(BrokerError):  # the server finds out by itself
            for pull in self._pulls:
                await self._intake.hand_back(pull.well, await pull.aclose())
            if self._told is not None:
                await alive.sign_off(self._office.book, self._group, options=self._options)

    def _turn(self, deliveries: Sequence[Delivery]) -> contextlib.AbstractAsyncContextManager[object]:
        """The story of one that runs alone is changed by one call at a time: who renews must not fence who settles."""
        is_alone = any(isinstance(each.token, Held) and each.token.is_marked for each in deliveries)
        return self._alone if is_alone else contextlib.nullcontext()

    async def _pull(self, limit: int, *, wait: timedelta) -> tuple[list[Delivery], bool]:
        """What there is; and whether there was anything, be it only suspects."""
        async with self._pulling:
            for pull in reversed(self._pulls):
                is_lane = pull is not self._pulls[0]
                if is_lane and self._office.clock.now() - self._lane_at < _SLICE and wait > NOW:
                    continue
                taken, some = await self._pull_from(pull, limit, wait=NOW if is_lane else wait)
                if is_lane and not some:
                    self._lane_at = self._office.clock.now()
                if some:
                    return taken, some
        return [], False

    async def _pull_from(self, pull: Pull, limit: int, *, wait: timedelta) -> tuple[list[Delivery], bool]:
        try:
            found = await pull.take(limit, wait=wait)
        except BrokerUnavailable:
            self._office.streams.forget()
            raise
        now = self._pulled_at = self._office.clock.now()
        if not found:
            return [], False
        taken = await self._intake.sort(pull.well, found, now=now, asked_at=pull.asked_at)
        self._hand.update([each.token for each in taken])
        return taken, True

    async def _reap(self, pull: Pull, most: int) -> None:
        """Have the server give us what dead workers held; it comes before what is new.

        What is new, or due to be tried again, is handed back, since nobody asked for it: so one is taken first, to
        see what there is. Bounded: leases are renewed between two heartbeats.
        """
        clock, ask_for = self._office.clock, 1
        ends_at = clock.now() + self._intake.lease / 6
        due: list[Delivery] = []
        async with self._pulling:
            while ask_for and clock.now() <= ends_at:
                found = await pull.take(ask_for, wait=NOW)
                again = [one for one in found if read_reply(one.reply).delivered > 1]
                due += await self._intake.sort(pull.well, again, now=clock.now(), asked_at=pull.asked_at)
                await self._intake.hand_back(pull.well, [one for one in found if read_reply(one.reply).delivered == 1])
                most -= len(again)
                ask_for = min(most, _AT_ONCE) if len(again) == ask_for else 0
            self._hand.update([each.token for each in due])
            await self.release(due)

    def _in_hand(self, well: Well, *, now: datetime) -> int:
        self._hand = {one for one in self._hand if not one.is_lost(now)}
        return sum(one.well is well for one in self._hand)

    def _is_mine(self, held: Any) -> bool:
        return isinstance(held, Held) and held.owner == self._options.owner and held.well in self._group.wells


def _lease_in(info: dict[str, Any]) -> timedelta:
    return timedelta(microseconds=int(info["config"].get("ack_wait", 0)) // 1000)
