"""Taking messages: new entries of the stream, what has fallen due, and what came back by the lane.

While messages flow, one read brings hundreds. In between, and whenever a read brings less, a look at the due index,
the lane and the pause. A wait blocks at the server, and is ended as soon as something of our own falls due earlier.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from redrive.brokers.redis.handing import Reader, Token
from redrive.brokers.redis.keys import GroupKeys
from redrive.brokers.redis.scripts import LARGEST_CALL, run
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.setting import Setting
from redrive.brokers.redis.settling import released
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerError

LOOK: Final = 0.25
"""Seconds between two looks while messages flow."""
MANY: Final = 32
"""A read that brings as many as were asked for, and no fewer than this, means that messages flow."""
MOST_DUE: Final = 2 * LARGEST_CALL
LONGEST_BLOCK: Final = 1.0
FRESH_FIRST_EVERY: Final = 4
"""Turns of which one begins with what is new: so that retries, however many, never starve it."""
_AGAIN: Final = 0.05
_TICK: Final = 0.001  # the server counts in milliseconds


class Taken(NamedTuple):
    """What a look brought."""

    deliveries: list[Delivery]
    vanished: Sequence[bytes] = ()
    paused: bool = False


class Intake:
    """What one worker takes from its stream. Belongs to one event loop.

    `told` are members with a story in hand, and the delivery count under which they are.
    """

    def __init__(self, server: Server, keys: GroupKeys, *, setting: Setting) -> None:
        self.reader = Reader(keys.queue, keys.name, setting.payload)
        self._last = b"0-0"  # the last new entry that we gave to our worker
        self.told: dict[bytes, int] = {}
        self._server = server
        self._keys = keys
        self._setting = setting
        self._shared = [keys.queue, keys.lane, keys.due, keys.stories]
        self._who: list[Value] = [keys.name, setting.options.owner]
        self._read = ("XREADGROUP", "GROUP", *self._who, "COUNT")
        self._wire: Wire | None = None
        self._looked = 0.0
        self._turns = 0
        self._flowing = False
        self._due: float | None = None  # when something falls due next, as far as we know
        self._stray = False
        self._waiting: int | None = None  # the number of our connection while it waits at the server
        self._alarm: asyncio.TimerHandle | None = None
        self._waking: asyncio.Task[None] | None = None
        self._wakers: set[asyncio.Task[None]] = set()  # until they have ended

    def hold(self, delivery: Delivery) -> None:
        """A message with a story came into our hands."""
        self.told[delivery.token.member] = delivery.token.deliveries

    def let_go(self, delivery: Delivery) -> None:
        """A message has left our hands; unless it is back in them already."""
        token = delivery.token
        if isinstance(token, Token) and self.told.get(token.member) == token.deliveries:
            del self.told[token.member]

    def expect(self, delay: timedelta) -> None:
        """Something falls due after this delay: if a wait would end later, it ends then."""
        due = time.monotonic() + delay.total_seconds() + _TICK
        if self._due is None or due < self._due:
            self._due = due
            if self._waiting is not None:
                self._set_alarm()

    async def take(self, limit: int, *, wait: timedelta) -> Taken:
        """Up to `limit` deliveries, and the members that were found to have vanished."""
        if self._wire is None:
            self._wire = self._server.open_wire(self._keys.queue)
        ends = time.monotonic() + wait.total_seconds()
        try:
            if self._stray:
                await self._let_strays_go(self._wire)
            while True:
                found = await self._take_now(self._wire, limit)
                left = ends - time.monotonic()
                if found.deliveries or found.vanished or left <= 0:
                    return found
                if found.paused:
                    await asyncio.sleep(min(left, LOOK))
                elif deliveries := await self._wait(self._wire, limit, left):
                    return Taken(deliveries)
        except BaseException:
            self._stray, self._flowing = True, False  # the server may have handed out what nobody will hear of
            raise

    async def aclose(self) -> None:
        """Hand back what we did not hear of, and give the connection back."""
        self._stop_alarm()
        await asyncio.gather(*self._wakers, return_exceptions=True)
        if self._wire is not None:
            wire, self._wire = self._wire, None
            if self._stray:
                await self._let_strays_go(wire)
            await wire.aclose()

    async def _take_now(self, wire: Wire, limit: int) -> Taken:
        now = time.monotonic()
        if self._flowing and now - self._looked < LOOK and (self._due is None or now < self._due):
            deliveries = await self._read_new(wire, limit)
            self._flowing = len(deliveries) == limit
            if deliveries:
                self._last = deliveries[-1].token
                return Taken(deliveries)
        self._turns += 1
        fresh_first = self._turns % FRESH_FIRST_EVERY == 0
        deliveries = await self._read_new(wire, limit) if fresh_first and not await self._is_paused(wire) else []
        found = await self._look(wire, limit - len(deliveries)) if len(deliveries) < limit else Taken([])
        deliveries += found.deliveries
        if len(deliveries) < limit and not found.paused:
            deliveries += await self._read_new(wire, limit - len(deliveries))
        self._flowing = len(deliveries) == limit >= MANY
        return found._replace(deliveries=self._give(deliveries))

    async def _look(self, wire: Wire, limit: int) -> Taken:
        self._looked = time.monotonic()
        limit = min(limit, MOST_DUE)
        keys = self._keys
        answer: list[Any] = await run(
            wire,
            "gather",
            [*self._shared, keys.paused, keys.delayed, keys.delayed_messages],
            [*self._who, limit],
        )
        paused, now, due, rows, vanished = answer
        self._due = None if due == b"" else time.monotonic() + max(float(due) - float(now), 0.0) / 1000 + _TICK
        return Taken(self._tell(rows), vanished, paused=bool(paused))

    async def _is_paused(self, wire: Wire) -> bool:
        return bool(await wire.call("EXISTS", self._keys.paused))

    async def _read_new(self, wire: Wire, limit: int) -> list[Delivery]:
        answer = await wire.call(*self._read, limit, "STREAMS", self._keys.queue, ">")
        return self._hand_out(answer[0][1]) if answer else []

    async def _wait(self, wire: Wire, limit: int, left: float) -> list[Delivery]:
        """Wait at the server for something new in the stream or the lane, until something falls due."""
        self._waiting = await wire.client_id()
        millis = max(int(min(left, LONGEST_BLOCK) * 1000), 1)
        share = max(limit // 2, 1)  # of each of the two
        streams = (self._keys.queue, self._keys.lane, ">", ">")
        self._set_alarm()
        try:
            answer = await wire.call(*self._read, share, "BLOCK", millis, "STREAMS", *streams)
        finally:
            self._waiting = None
            self._stop_alarm()
        return self._give(await self._read_both(wire, answer, limit)) if answer else []

    def _give(self, deliveries: list[Delivery]) -> list[Delivery]:
        """Note what our worker has from now on. Nothing may fail between this and the end of a fetch."""
        tokens = [delivery.token for delivery in deliveries]
        self.told.update([token[:2] for token in tokens if type(token) is Token])
        self._last = next((token for token in reversed(tokens) if type(token) is bytes), self._last)
        return deliveries

    def _set_alarm(self) -> None:
        """Wake the wait when something falls due: the server itself ends waits up to a tenth of a second late."""
        self._stop_alarm()
        if self._due is not None:
            self._alarm = asyncio.get_running_loop().call_later(max(self._due - time.monotonic(), 0.0), self._ring)

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        if self._waking is not None:
            self._waking.cancel()
        self._alarm = self._waking = None

    def _ring(self) -> None:
        if self._waiting is not None:
            self._waking = asyncio.create_task(self._wake(self._waiting))
            self._wakers.add(self._waking)
            self._waking.add_done_callback(self._wakers.discard)

    async def _wake(self, client_id: int) -> None:
        """End a wait before its time; again, if it had not begun yet.

        Whether it is still wanted is asked each time: a cancel may be lost inside the client.
        """
        while self._waking is asyncio.current_task():
            with contextlib.suppress(BrokerError):
                async with self._server.wire(self._keys.queue) as other:
                    await other.call("CLIENT", "UNBLOCK", client_id)
            await asyncio.sleep(_AGAIN)

    async def _read_both(self, wire: Wire, answer: Sequence[Any], limit: int) -> list[Delivery]:
        taken: list[Delivery] = []
        for stream, entries in answer:
            if stream == self._keys.queue.encode():
                taken += self._hand_out(entries)
                continue
            members = [b"l" + entry_id for entry_id, _ in entries]
            rows: list[Any] = await run(wire, "stories", self._shared, [*self._who, *members])
            taken += self._tell([[*row[:6], fields, *row[7:]] for row, (_, fields) in zip(rows, entries, strict=True)])
        if len(taken) > limit:
            await run(wire, "release", self._shared, [*self._who, *released(taken[limit:])])
        return taken[:limit]

    def _hand_out(self, entries: Sequence[Any]) -> list[Delivery]:
        return self.reader.fresh(entries, at=self._setting.clock.now())

    def _tell(self, rows: Sequence[Any]) -> list[Delivery]:
        at = self._setting.clock.now()
        return [self.reader.told(row, at=at) for row in rows]

    async def _let_strays_go(self, wire: Wire) -> None:
        """Hand back what the server believes to be in our hands and our worker does not have: an answer never came.

        New entries come in the order of their ids: those after the last one that our worker got are strays.
        """
        name, owner = self._who
        strays: list[Value] = []
        for prefix, stream in ((b"m", self._keys.queue), (b"l", self._keys.lane)):
            after = "-"
            while pending := await wire.call("XPENDING", stream, name, after, "+", LARGEST_CALL, owner):
                for entry_id, _, _, count in pending:
                    heard = prefix == b"m" and count == 1 and not _is_later(entry_id, self._last)
                    if not heard and prefix + entry_id not in self.told:
                        strays += (prefix + entry_id, count, "0", 0)
                after = f"({pending[-1][0].decode()}"
        for start in range(0, len(strays), 4 * LARGEST_CALL):
            part = strays[start : start + 4 * LARGEST_CALL]
            await run(wire, "release", self._shared, [*self._who, *part])
        self._stray = False


def _is_later(one: bytes, other: bytes) -> bool:
    return [int(part) for part in one.split(b"-")] > [int(part) for part in other.split(b"-")]
