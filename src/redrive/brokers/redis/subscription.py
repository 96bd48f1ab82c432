"""One worker's hold on a stream."""

import contextlib
import json
import os
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from redrive.brokers.process import identity, is_dead
from redrive.brokers.redis.desk import Desk
from redrive.brokers.redis.entry import whole_millis
from redrive.brokers.redis.errors import code_of
from redrive.brokers.redis.joining import register, rejoin
from redrive.brokers.redis.keys import GroupKeys
from redrive.brokers.redis.scripts import LARGEST_CALL, run
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.setting import Setting
from redrive.brokers.redis.settling import extended, in_calls, member_of, released
from redrive.brokers.redis.taking import Intake
from redrive.brokers.redis.vanished import bury
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.event import BrokerFaulted
from redrive.core.outcome import Settled, Settlement

_REAP_ROUNDS: Final = 20
_SWEEP_ROUNDS: Final = 20


class RedisSubscription:
    """The `Subscription` of the Redis broker. May be called from several event loops; fetched from by one."""

    def __init__(self, server: Server, keys: GroupKeys, *, setting: Setting) -> None:
        self._server = server
        self._keys = keys
        self._setting = setting
        self._shared = [keys.queue, keys.lane, keys.due, keys.stories]
        self._who: list[Value] = [keys.name, setting.options.owner]
        self._lease = whole_millis(setting.options.lease)
        self._intake = Intake(server, keys, setting=setting)
        self._desk = Desk(server, keys, setting=setting, intake=self._intake)
        self._swept: Value = ""  # where the sweep goes on
        self.state = ""

    @property
    def incarnation(self) -> str:
        return self._setting.incarnation

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        if limit < 1:
            return ()
        try:
            taken = await self._intake.take(limit, wait=wait)
        except BrokerUnavailable as error:
            await self._mend(error)
            raise
        if taken.vanished:
            try:
                await self._bury(taken.vanished)
            except BrokerError:  # the next look finds them again
                if not taken.deliveries:
                    raise
        return taken.deliveries

    async def fetch_suspect(self) -> Delivery | None:
        obituary = self._setting.options.obituary
        told = ["", ""] if obituary is None else [obituary.owner, obituary.text]
        async with self._wire() as wire:
            await self._reap(wire)
            vanished = True
            while vanished:
                row, vanished = await self._run(wire, "suspect", [*told, *self._intake.told], keys=[self._keys.paused])
                await self._bury(vanished)
        if not row:
            return None
        delivery = self._intake.reader.told(row, at=self._setting.clock.now(), alone=True)
        self._intake.hold(delivery)
        return delivery

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        if not items:
            return ()
        try:
            return await self._desk.settle(items)
        except BrokerUnavailable as error:
            await self._mend(error)
            raise

    async def extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        if not deliveries:
            return ()
        lost: set[bytes] = set()
        async with self._wire() as wire:
            for part in in_calls(deliveries):
                not_ours, gone = await self._run(wire, "extend", [self._lease, *extended(part)])
                again = [delivery for delivery in part if member_of(delivery).member in set(gone)]
                if again:  # their entries are gone from the stream: what we hold is the last copy
                    args = [self._lease, *extended(again, payload=self._setting.payload)]
                    not_ours += (await self._run(wire, "extend", args))[0]
                lost.update(not_ours)
        return [
            delivery for delivery in deliveries if member_of(delivery).member in lost or self._desk.is_foreign(delivery)
        ]

    async def release(self, deliveries: Sequence[Delivery]) -> None:
        async with self._wire() as wire:
            for part in in_calls([delivery for delivery in deliveries if not self._desk.is_foreign(delivery)]):
                gone = set(await self._run(wire, "release", released(part)))
                again = [delivery for delivery in part if member_of(delivery).member in gone]
                if again:
                    await self._run(wire, "release", released(again, payload=self._setting.payload))
        for delivery in deliveries:
            self._intake.let_go(delivery)

    async def heartbeat(self, *, paused: str | None = None) -> int:
        options = self._setting.options
        record = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "process": identity(),
            "version": options.version,
            "paused": paused,
            "lease": self._lease,
            "state": self.state,
        }
        async with self._wire() as wire:
            await self._run(wire, "pulse", [json.dumps(record)], keys=[self._keys.workers])
            suspects = await self._reap(wire)
            await self._sweep(wire)
            await self._desk.trim(wire)
        return suspects

    async def aclose(self) -> None:
        with contextlib.suppress(BrokerError):  # the record ends by itself soon after
            await self._intake.aclose()
            async with self._wire() as wire:
                await self._desk.trim(wire)  # nobody may come after us for long
                await self._run(wire, "sign_off", [], keys=[self._keys.workers])
        await self._desk.aclose()

    async def _reap(self, wire: Wire) -> int:
        """Make suspects of what the dead held; return how many suspects wait."""
        dead = await self._proven_dead(wire)
        for _ in range(_REAP_ROUNDS):
            args: list[Value] = [self._lease, LARGEST_CALL, *dead]
            suspects, more, vanished = await self._run(wire, "reap", args, keys=[self._keys.workers])
            if vanished:
                await self._bury(vanished)
            if more == b"0":
                break
        return int(suspects)

    async def _sweep(self, wire: Wire) -> None:
        """Put right what was left in disorder: stories of nobody, and a due index that was lost."""
        for _ in range(_SWEEP_ROUNDS):
            (self._swept,) = await self._run(wire, "sweep", [self._swept])
            if not self._swept:
                break

    async def _proven_dead(self, wire: Wire) -> list[str]:
        """Workers that cannot come back: those whose process ended on this machine, and the one we were told of."""
        records = await wire.call("HGETALL", self._keys.workers)
        found = []
        for owner, record in zip(records[::2], records[1::2], strict=True):
            with contextlib.suppress(ValueError, AttributeError, UnicodeDecodeError):
                if is_dead(json.loads(record).get("process", "")):
                    found.append(owner.decode())
        obituary = self._setting.options.obituary
        return found if obituary is None else [*found, obituary.owner]

    async def _bury(self, members: Sequence[bytes]) -> None:
        async with self._wire() as wire:
            for member in members:
                await bury(wire, member, keys=self._keys, setting=self._setting)

    async def _run(self, wire: Wire, name: str, args: Sequence[Value], *, keys: Sequence[str] = ()) -> list[Any]:
        try:
            return await run(wire, name, [*self._shared, *keys], [*self._who, *args])
        except BrokerUnavailable as error:
            await self._mend(error)
            raise

    async def _mend(self, error: BrokerUnavailable) -> None:
        """After a flush, or a failover that lost it, make the group again from the beginning, and say so."""
        if code_of(error.__cause__ or error) != "NOGROUP":
            return
        async with self._wire() as wire:
            joined = await rejoin(wire, self._keys)
        await register(self._server, self._keys.queue, self._setting.dlq)
        self._setting = self._setting.after_rejoining(joined.incarnation)
        if self._setting.sink is not None:
            self._setting.sink.emit(
                BrokerFaulted(
                    at=self._setting.clock.now(),
                    broker=self._setting.broker,
                    queue=self._keys.queue,
                    group=self._keys.name,
                    call="fetch",
                    why="the consumer group was gone, with what was known of pending messages; it was made again and "
                    "reads the stream from its beginning",
                )
            )

    def _wire(self) -> contextlib.AbstractAsyncContextManager[Wire]:
        return self._server.wire(self._keys.queue)
