"""The redriver: carries a redrive out, step by step, and can be killed at any point.

    claim (its generation is spent) -> send back (once per letter and generation) -> record -> watch

What was claimed and not recorded is claimed again after a crash, and sent with the same key: the broker answers with
the message that it has. An answer may overtake the record; the record does not undo it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import uuid4

from redrive.core.audit import Act
from redrive.core.errors import (
    BrokerError,
    BrokerUnavailable,
    RedriveError,
    StateConflict,
    StoreError,
    StoreUnavailable,
)
from redrive.core.event import BrokerFaulted, Event, RedriveHalted
from redrive.core.ports import Broker, Clock, EventSink
from redrive.core.ports.cipher import Cipher
from redrive.core.ports.store import Store
from redrive.core.redrive import Gate, ItemStatus, Move, Progress, Redrive, RedriveState, next_move
from redrive.core.stored import Claimed
from redrive.triage.drive import Drive, Told
from redrive.triage.ending import mark, unheard
from redrive.triage.sending import opened, send_back_of
from redrive.triage.watch import why

CHUNK = 500
LEASE = timedelta(seconds=10)
LISTED_EVERY = timedelta(seconds=2)
AGAIN_AFTER = timedelta(seconds=30)
"""How long a redrive that went wrong as nobody thought is left alone."""


class Redriver:
    """Carries out redrives. Many processes may: each redrive has one redriver at a time, the others watch it.

    `brokers` by the name that letters have for them. `tell` hears how far each redrive is, often; `sink` how it ends.
    `cipher` opens letters that are kept encrypted.
    """

    def __init__(
        self,
        store: Store,
        brokers: Mapping[str, Broker],
        *,
        clock: Clock,
        tell: Callable[[Told], None] | None = None,
        sink: EventSink | None = None,
        cipher: Cipher | None = None,
        chunk: int = CHUNK,
    ) -> None:
        self._store = store
        self._brokers = brokers
        self._clock = clock
        self._tell = tell
        self._sink = sink
        self._emit: Callable[[Event], None] = sink.emit if sink else lambda _: None
        self._cipher = cipher
        self._chunk = chunk
        self._owner = uuid4().hex

    async def serve(self) -> None:
        """Take up every redrive that is to run, now and later, until cancelled.

        One that goes wrong is told, and taken up again after a while; the others go on.
        """
        running: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            while True:
                running = {redrive_id: task for redrive_id, task in running.items() if not task.done()}
                async with self._surviving():
                    for redrive in await self._store.unfinished():
                        if redrive.redrive_id not in running:
                            running[redrive.redrive_id] = tasks.create_task(self._carry_out(redrive.redrive_id))
                await self._clock.sleep(LISTED_EVERY)

    async def _carry_out(self, redrive_id: str) -> None:
        async with self._surviving(f"redrive {redrive_id}: "):
            await self.run(redrive_id)

    @contextlib.asynccontextmanager
    async def _surviving(self, what: str = "") -> AsyncIterator[None]:
        """Whatever goes wrong in the block is told, and waited on for a while."""
        try:
            yield
        except StoreUnavailable:
            pass  # the next list will do
        except Exception as error:  # noqa: BLE001 - of many redrives, none may end the others
            said = f"{what}{type(error).__name__}: {error}"
            self._emit(BrokerFaulted(at=self._clock.now(), queue="", call="redrive", why=said))
            await self._clock.sleep(AGAIN_AFTER)

    async def run(self, redrive_id: str) -> Redrive:
        """Carry a redrive out until it no longer runs, and return it: done, stopped, paused or cancelled.

        While another process does so, watch. A store or broker that is away is waited for. Raises `LetterNotFound`.
        """
        drive = Drive(now=self._clock.now())
        try:
            while True:
                try:
                    redrive = await self._turn(redrive_id, drive)
                except (StoreUnavailable, BrokerUnavailable) as error:
                    drive.rest(now=self._clock.now())
                    if self._tell and drive.told:
                        self._tell(drive.told._replace(waiting=str(error)))
                else:
                    if redrive.state is not RedriveState.RUNNING:
                        return redrive
                if drive.pause:
                    await self._clock.sleep(drive.pause)
        finally:
            with contextlib.suppress(StoreError):
                now = self._clock.now()
                await self._store.take(redrive_id, owner=self._owner, now=now, until=now)

    async def _turn(self, redrive_id: str, drive: Drive) -> Redrive:
        """Do the next thing; `drive.pause` is how long to wait before the one after it."""
        redrive = await self._store.redrive(redrive_id)
        if redrive.state is not RedriveState.RUNNING:
            await self._look(redrive, drive)
            return redrive
        if not await self._hold(redrive, drive):
            await self._look(redrive, drive, waiting="another process carries it out")
            drive.rest(now=self._clock.now())
            return redrive
        move = next_move(redrive, drive.progress or await self._look(redrive, drive))
        if move.done or move.gate in (Gate.STOP, Gate.PAUSE):
            return await self._halt(redrive, move, drive)
        if move.gate is Gate.OPEN:
            await self._send(redrive, move.step, drive)
        else:
            await self._wait(redrive, drive)
        return redrive

    async def _hold(self, redrive: Redrive, drive: Drive) -> bool:
        """Be the one redriver of it beyond the next pause, if no other one is. Renewed when half of it is over."""
        now = self._clock.now()
        if drive.held_until - now > LEASE / 2 + drive.pause:
            return True
        until = now + LEASE + 2 * drive.pause
        if not await self._store.take(redrive.redrive_id, owner=self._owner, now=now, until=until):
            return False
        drive.held_until = until
        return True

    async def _send(self, redrive: Redrive, step: int, drive: Drive) -> None:
        bucket = drive.bucket(redrive, now=self._clock.now())
        permits = bucket.take(self._chunk, now=self._clock.now())
        if not permits:
            drive.pause = min(bucket.next_in, LEASE / 2)  # another one has a bucket of its own, which is full
            return
        claimed = await self._store.claim(redrive.redrive_id, step=step, limit=permits)
        bucket.give_back(permits - len(claimed))
        if not claimed:
            drive.rest(now=self._clock.now())
        else:
            try:
                await self._publish(redrive, claimed)
            except (BrokerUnavailable, StoreError):
                raise  # what is claimed is claimed again, and sent with the same key
            except (RedriveError, ValueError) as error:
                await self._mark(redrive, RedriveState.PAUSED, f"a letter cannot be sent: {error}")
            drive.hurry(now=self._clock.now())
        in_last_step = step == len(redrive.steps)
        if not claimed or not in_last_step or drive.is_old(now=self._clock.now()):
            await self._look(redrive, drive)

    async def _publish(self, redrive: Redrive, claimed: Sequence[Claimed]) -> None:
        by_broker: dict[str, list[Claimed]] = {}
        for one in claimed:
            by_broker.setdefault(one.broker, []).append(one)
        for name, ours in by_broker.items():
            broker = self._brokers.get(name)
            if broker is None:
                raise BrokerError(f"no broker named {name!r} is at hand")
            items = [send_back_of(redrive, await opened(one, self._store, cipher=self._cipher)) for one in ours]
            message_ids = await broker.send_back(items)
            messages = {one.letter_id: sent for one, sent in zip(ours, message_ids, strict=True)}
            await self._store.sent(redrive.redrive_id, messages, at=self._clock.now())

    async def _wait(self, redrive: Redrive, drive: Drive) -> None:
        heard_by = self._clock.now() - redrive.report_within
        if redrive.created_at <= heard_by:
            await self._give_up_on(redrive, heard_by)
        await self._look(redrive, drive, waiting=await why(redrive, self._brokers) if self._tell else "")
        drive.rest(now=self._clock.now())

    async def _give_up_on(self, redrive: Redrive, heard_by: datetime) -> None:
        quiet = redrive.confirm == "quiet"
        expired = await self._store.expire(redrive.redrive_id, before=heard_by, quiet=quiet)
        if expired:
            self._emit(unheard(redrive, expired, at=self._clock.now(), quiet=quiet))

    async def _halt(self, redrive: Redrive, move: Move, drive: Drive) -> Redrive:
        # Looked at again, because it may have been a while: what is decided here is final.
        progress = await self._look(redrive, drive)
        if next_move(redrive, progress) != move:
            drive.hurry(now=self._clock.now())
            return redrive
        if move.done:
            marked = await self._mark(redrive, RedriveState.DONE, "")
        elif move.gate is Gate.STOP:
            marked = await self._mark(redrive, RedriveState.STOPPED, "a canary failed the same way")
        else:
            marked = await self._mark(redrive, RedriveState.PAUSED, await self._doubt(redrive, progress, move.step))
        await self._look(marked, drive)
        return marked

    async def _doubt(self, redrive: Redrive, progress: Progress, step: int) -> str:
        so_far = Progress(progress.steps[: step + 1])
        otherwise, unheard = so_far.count(ItemStatus.FAILED_OTHERWISE), so_far.count(ItemStatus.UNCONFIRMED)
        said = [f"{otherwise:,} failed in another way"] if otherwise else []
        if unheard:
            said.append(f"{unheard:,} not heard of within {redrive.report_within}: {await why(redrive, self._brokers)}")
        return ", ".join(said)

    async def _mark(self, redrive: Redrive, state: RedriveState, said: str) -> Redrive:
        verb = {RedriveState.DONE: "end", RedriveState.STOPPED: "stop"}.get(state, "pause")
        selection = f"redrive={redrive.redrive_id}"
        act = Act(who="redriver", verb=f"redrives.{verb}", at=self._clock.now(), selection=selection)
        try:
            marked = await mark(self._store, redrive, state, why=said, act=act, sink=self._sink)
        except StateConflict:  # somebody has ended it meanwhile
            return await self._store.redrive(redrive.redrive_id)
        self._emit(RedriveHalted(at=act.at, queue="", redrive_id=redrive.redrive_id, state=state, why=said))
        return marked

    async def _look(self, redrive: Redrive, drive: Drive, *, waiting: str = "") -> Progress:
        progress = await self._store.progress(redrive.redrive_id)
        drive.saw(progress, now=self._clock.now())
        drive.told = Told(redrive, progress, waiting)
        if self._tell:
            self._tell(drive.told)
        return progress
