"""One worker's hold on a group."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from redrive.brokers.rabbitmq.hands import Hold
from redrive.brokers.rabbitmq.intake import Intake
from redrive.brokers.rabbitmq.judging import Judge, entry_now
from redrive.brokers.rabbitmq.link import tag_of
from redrive.brokers.rabbitmq.names import Place
from redrive.brokers.rabbitmq.office import Office
from redrive.brokers.rabbitmq.settling import Settler
from redrive.brokers.rabbitmq.suspects import Suspects
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.errors import BrokerError, QueueNotFound
from redrive.core.outcome import Settled, Settlement
from redrive.core.ports import Options

T = TypeVar("T")

_LOOK: Final = timedelta(seconds=1)
"""How often a worker that waits looks whether its group is paused."""


class RabbitSubscription:
    """The `Subscription` of the RabbitMQ broker. Belongs to one event loop."""

    def __init__(
        self,
        office: Office,
        place: Place,
        *,
        options: Options,
        incarnation: str,
        closed: Callable[["RabbitSubscription"], None],
    ) -> None:
        self._office = office
        self.place = place
        self._options = options
        self._incarnation = incarnation
        self._closed = closed
        source = office.topology.source(place)
        self.intake = Intake(office, source, Judge(office, place, source=source, options=options))
        self.settler = Settler(office, place, dlq=options.dlq, freed=self.intake.freed)
        self._suspects = Suspects(office, place, options=options)
        self._notes = office.notes(place)
        self._paused: tuple[datetime, bool] | None = None
        self._handing: asyncio.Future[Sequence[Delivery]] | None = None
        self._has_beaten = False
        self._open = True

    @property
    def incarnation(self) -> str:
        return self._incarnation

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        if limit < 1:
            return ()
        self.intake.is_watched = True
        try:
            return await self._fetch(limit, wait)
        except QueueNotFound:
            await self._begin_again()
            raise
        except asyncio.CancelledError:
            self.intake.is_watched = False
            await _finish(self._put_back())
            raise
        finally:
            self.intake.is_watched = False
            self.intake.left()

    async def _fetch(self, limit: int, wait: timedelta) -> Sequence[Delivery]:
        clock, intake = self._office.clock, self.intake
        ends_at = clock.now() + wait
        while True:
            if await self._is_paused(exact=wait <= NOW):
                await _finish(intake.stop())
            elif wait <= NOW:
                await _finish(intake.get(limit))
                return await self._handed_out(limit)
            else:
                intake.bell.clear()
                await _finish(intake.want(limit))
                if intake.ready and (found := await self._handed_out(limit)):
                    return found
            now = clock.now()
            if now >= ends_at:
                return ()
            if not await self._news(min(ends_at - now, _LOOK)) and ends_at - now >= _LOOK:
                intake.nothing_came()

    async def _handed_out(self, limit: int) -> Sequence[Delivery]:
        self._handing = asyncio.ensure_future(self._hand_out(limit))
        return await asyncio.shield(self._handing)

    async def _put_back(self) -> None:
        """Whoever waited has gone: what was being handed out is in nobody's hands."""
        handing, self._handing = self._handing, None
        if handing is not None:
            with contextlib.suppress(BrokerError):
                await self.release(await handing)
        await self.intake.stop()

    async def _begin_again(self) -> None:
        """Somebody has deleted what was begun: it is begun once more, and the next fetch goes on."""
        self._office.link.missing()
        await _finish(self._office.topology.group(self.place, moves=self._options.moves))

    async def _news(self, wait: timedelta) -> bool:
        """Wait until something has come, or for so long; whether it has."""
        bell = asyncio.ensure_future(self.intake.bell.wait())
        time = asyncio.ensure_future(self._office.clock.sleep(wait))
        try:
            await asyncio.wait([bell, time], return_when=asyncio.FIRST_COMPLETED)
            return bell.done()
        finally:
            bell.cancel()
            time.cancel()

    async def _hand_out(self, limit: int) -> Sequence[Delivery]:
        """What has come: written down first, since it may start as soon as it is handed out."""
        intake, now = self.intake, self._office.clock.now()
        until = now + self._options.lease
        holds = []
        taken = [intake.ready.popleft() for _ in range(min(limit, len(intake.ready)))]
        for each in taken:
            entry = entry_now(each, self.place, self._office)
            hold = Hold(entry, self.place, intake.source, tag_of(each), self._options.owner, now, until)
            hold.consumer = each.consumer_tag
            holds.append(hold)
        if not holds:
            return ()
        try:
            await self._notes.write("take", self._options, keys=[hold.entry.key for hold in holds])
        except BrokerError:
            intake.ready.extendleft(reversed(taken))
            raise
        kept = [hold for hold in holds if hold.is_ours]
        self._office.hands.add(kept)
        now = self._office.clock.now()
        return [hold.entry.delivery(self.place.group, now=now, token=hold) for hold in kept]

    async def fetch_suspect(self) -> Delivery | None:
        if await self._is_paused(exact=True):
            return None
        hold = await _finish(self._take_suspect())
        if hold is None:
            return None
        return hold.entry.delivery(self.place.group, now=self._office.clock.now(), token=hold, alone=True)

    async def _take_suspect(self) -> Hold | None:
        return await self._suspects.take(await self.intake.channel())

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        if not items:
            return ()
        return await self.settler.settle(items)

    async def extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        until = self._office.clock.now() + self._options.lease
        lost = []
        for delivery in deliveries:
            hold = delivery.token
            known = isinstance(hold, Hold) and hold.place == self.place
            if known and hold.is_ours:
                hold.until = until
                continue
            lost.append(delivery)
            if known:
                hold.is_lost = True  # its handler is ended: what comes back is not for it
        return lost

    async def release(self, deliveries: Sequence[Delivery]) -> None:
        holds = [each.token for each in deliveries if isinstance(each.token, Hold)]
        ours = [hold for hold in holds if hold.place == self.place and hold.is_ours]
        if ours:
            await _finish(self._release(ours))

    async def _release(self, holds: Sequence[Hold]) -> None:
        """Strike the notes first: who finds a message without one takes it for one that was never begun."""
        await self._notes.write("drop", self._options, keys=[hold.entry.key for hold in holds])
        await self.settler.release([hold for hold in holds if hold.is_ours])

    async def heartbeat(self, *, paused: str | None = None) -> int:
        await _finish(self._beat(paused))
        return await self._suspects.waiting()

    async def _beat(self, paused: str | None) -> None:
        await self.keep_house()
        mine = list(self._office.hands.of(self.place, owner=self._options.owner))
        self._has_beaten = True
        await self._notes.beat(
            self._options,
            taken=[hold.entry.key for hold in mine if not hold.alone],
            alone=[hold.entry.key for hold in mine if hold.alone],
            paused=paused,
        )
        await self.intake.look_for_faults()

    async def keep_house(self) -> None:
        """Move what is in the hands of workers that are not heard of any more to the suspects."""
        now = self._office.clock.now()
        for hold in self._office.hands.overdue(now):
            if hold.place == self.place:
                await self.settler.to_suspects(hold, self._suspects.marked(hold, now))

    async def aclose(self) -> None:
        if not self._open:
            return
        self._open = False
        holds = any(self._office.hands.of(self.place, owner=self._options.owner))
        await self.intake.aclose(keep_channel=holds)
        if self._has_beaten:
            with contextlib.suppress(BrokerError):
                await self._notes.sign_off(self._options)
        self._closed(self)

    async def _is_paused(self, *, exact: bool) -> bool:
        now = self._office.clock.now()
        if exact or self._paused is None or now - self._paused[0] >= _LOOK:
            self._paused = now, bool(await self._office.link.count(self.place.paused))
        return self._paused[1]


async def _finish(call: Coroutine[Any, Any, T]) -> T:
    """The answer of a call that, once begun, is not left in the middle: the client closes a channel for that."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise
