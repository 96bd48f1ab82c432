"""One worker's hold on a lane."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from redrive.brokers.process import identity
from redrive.brokers.sqlite.claim import Sight, claim, look
from redrive.brokers.sqlite.errors import is_full
from redrive.brokers.sqlite.hold import Holder, extend, release
from redrive.brokers.sqlite.housekeeping import Pulse, beat, sign_off
from redrive.brokers.sqlite.outcome import Desk
from redrive.brokers.sqlite.rows import Lane
from redrive.brokers.sqlite.settle import settle, settle_acks
from redrive.brokers.sqlite.space import Space
from redrive.brokers.sqlite.suspects import anything_ended, anything_suspect, reap, reap_and_claim
from redrive.brokers.sqlite.transaction import MICROSECOND, Transaction, as_instant, as_micros
from redrive.brokers.sqlite.writer import Writer
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.errors import BrokerUnavailable
from redrive.core.outcome import Settled, Settlement, as_settlement
from redrive.core.ports import Clock, Options

FRESH_FIRST_EVERY = 4  # fetches: so that retries, however many, never starve what is new


class SqliteSubscription:
    """The `Subscription` of the SQLite broker. May be called from several event loops."""

    def __init__(self, writer: Writer, lane: Lane, *, options: Options, clock: Clock, space: Space) -> None:
        self._writer = writer
        self._lane = lane
        self._options = options
        self._clock = clock
        self._space = space
        self._desk = Desk(lane, options.dlq)
        self._look = partial(look, lane)
        self._flowing = False
        self._fetches = 0
        self.state = ""

    @property
    def incarnation(self) -> str:
        return self._lane.incarnation

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        ends_at = self._clock.now() + wait
        while limit > 0:
            # While messages flow, trying is cheaper than looking first; else a look saves a write in vain.
            sight = None if self._flowing else await self._writer.read(self._look)
            if sight is None or sight.ready(as_micros(self._clock.now())):
                taken = await self._claim(limit)
                self._flowing = bool(taken)
                if taken:
                    return taken
            if sight is not None:
                if await self._writer.read(partial(anything_ended, self._lane)):
                    await self._writer.write(partial(reap, self._lane))
                if self._clock.now() >= ends_at:
                    break
                await self._rest(sight, ends_at=ends_at)
        return ()

    async def fetch_suspect(self) -> Delivery | None:
        if not await self._writer.read(partial(anything_suspect, self._lane)):
            return None
        self._space.require("fetch_suspect", queue=self._lane.queue)
        operation = partial(reap_and_claim, self._lane, self._holder(), self._options.obituary)
        return await self._writer.write(operation, undo=self._take_back)

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        if not items:
            return ()
        whole = [as_settlement(item) for item in items]
        try:
            return await self._writer.write(partial(settle, self._desk, whole))
        except BrokerUnavailable as error:
            if not is_full(error):
                raise
            return await self._writer.write(partial(settle_acks, self._desk, whole, error))

    async def extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        if not deliveries:
            return ()
        tokens = [delivery.token for delivery in deliveries]
        lost = await self._writer.write(partial(extend, self._lane, tokens, self._holder().lease))
        return [delivery for delivery in deliveries if delivery.token in lost]

    async def release(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            await self._writer.write(partial(release, self._lane, [delivery.token for delivery in deliveries]))

    async def heartbeat(self, *, paused: str | None = None) -> int:
        options = self._options
        pulse = Pulse(options.owner, socket.gethostname(), os.getpid(), identity(), options.version, paused, self.state)
        return await self._writer.write(partial(beat, self._lane, pulse))

    async def aclose(self) -> None:
        with suppress(BrokerUnavailable):  # the record ends by itself soon after
            await self._writer.write(partial(sign_off, self._lane, self._options.owner))

    async def _claim(self, limit: int) -> Sequence[Delivery]:
        self._space.require("fetch", queue=self._lane.queue)
        self._fetches += 1
        fresh_first = self._fetches % FRESH_FIRST_EVERY == 0
        operation = partial(claim, self._lane, self._holder(), limit, fresh_first=fresh_first)
        return await self._writer.write(operation, undo=self._take_back)

    async def _rest(self, sight: Sight, *, ends_at: datetime) -> None:
        """Wait until the lane looks different, the next message falls due, or the time is over."""
        now = self._clock.now()
        due_at = as_instant(sight.due_at)
        # Due by now counts: it was not yet when we looked. What a pause holds back waits for the pause to end.
        until = ends_at if due_at is None or sight.paused is not None else min(ends_at, due_at)
        changed = asyncio.ensure_future(self._writer.changed(self._lane.id, look=self._look, seen=sight))
        alarm = asyncio.ensure_future(self._clock.sleep(max(until - now, NOW)))
        try:
            await asyncio.wait({changed, alarm}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            alarm.cancel()
            await asyncio.gather(changed, alarm, return_exceptions=True)

    def _holder(self) -> Holder:
        return Holder(self._options.owner, identity(), self._options.lease // MICROSECOND)

    def _take_back(self, taken: Sequence[Delivery] | Delivery | None, transaction: Transaction) -> None:
        """What was handed to somebody who no longer waited has not started."""
        deliveries = [taken] if isinstance(taken, Delivery) else taken or ()
        release(self._lane, [delivery.token for delivery in deliveries], transaction)
