"""The settler: gathers outcomes and has them carried out, many in one call.

A call is on its way as soon as there is an outcome and no other call; what ends meanwhile goes with the next one.
So outcomes are on the wire within one round trip of the handler's end, without a timer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from redrive.core.delivery import Delivery
from redrive.core.outcome import DONE, GiveUp, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.ports import Clock, Subscription
from redrive.core.row import InRows, Row
from redrive.worker.account import Account
from redrive.worker.outcomes import Ended, Release, deliveries_of

FIRST_PAUSE = timedelta(milliseconds=100)
LONGEST_PAUSE = timedelta(seconds=30)
MOST = 1000  # outcomes per call, for who fetches fewer ahead

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Settler:
    """Carries out outcomes. Nothing handed to it is forgotten while the process lives, whatever the broker says.

    `output_refused` says what becomes of a success whose output the broker will not take. `drop_refused` acks
    messages whose dead letter cannot be written, instead of holding them and trying again. A call has up to
    `most` outcomes.
    """

    def __init__(
        self,
        subscription: Subscription,
        *,
        account: Account,
        clock: Clock,
        acked: Callable[[], None],
        output_refused: Callable[[Delivery, str], Ended],
        drop_refused: bool = False,
        most: int = MOST,
    ) -> None:
        self._subscription = subscription
        self._account = account
        self._clock = clock
        self._acked = acked
        self._output_refused = output_refused
        self._drop_refused = drop_refused
        self._most = most
        self._pending: list[Ended] = []
        self._flying: list[Ended] = []
        self._refused: dict[int, tuple[Settlement, int]] = {}  # by id(): what the broker refused, and how often
        self._again: set[asyncio.Task[None]] = set()
        self._kicked = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._runs: list[tuple[float, int]] = []
        self.add = self._pending.append  # bound once: it is called for every message
        self.ran = self._runs.append  # seconds, and how many handlers took so long

    def kick(self) -> None:
        """Let what was added go out; called whenever a lane pauses."""
        if self._pending:
            self._idle.clear()
            self._kicked.set()

    def in_hand(self) -> list[Delivery]:
        """Everything not yet settled. May be called from another thread."""
        held = [item for item, _ in list(self._refused.values())]
        return [each for item in (*self._pending, *self._flying, *held) for each in deliveries_of(item)]

    async def idle(self) -> None:
        """Return when everything added so far is settled, but for what the broker refuses."""
        self.kick()
        await self._idle.wait()

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            await self._kicked.wait()
            self._kicked.clear()
            while self._pending:
                self._flying = self._pending[: self._most]
                del self._pending[: self._most]
                await self._flush(self._flying)
                self._flying = []
            self._idle.set()

    async def close(self) -> None:
        """Stop trying again what was refused: it stays leased, and comes back as it was."""
        for task in self._again:
            task.cancel()
        await asyncio.gather(*self._again, return_exceptions=True)

    async def _flush(self, batch: list[Ended]) -> None:
        kinds = {*map(type, batch)}
        if Release in kinds:
            released = [item.delivery for item in batch if isinstance(item, Release)]
            await self._insist("release", self._subscription.release, released)
        items: Sequence[Any] = _to_settle(batch) if Release in kinds or Row in kinds else batch
        if not items:
            return
        answers, unheard = await self._insist("settle", self._subscription.settle, items)
        runs = self._runs[:]
        del self._runs[: len(runs)]
        acked = self._account.settled(items, answers, runs=runs, unheard=unheard)
        if acked < len(items) or self._refused:
            self._hear_refusals(items, answers)
        if acked:
            self._acked()

    async def _insist(
        self, name: str, call: Callable[[Sequence[Item]], Awaitable[Answer]], items: Sequence[Item]
    ) -> tuple[Answer, bool]:
        """The answer to a call, made until one comes; and whether a call before it may have done it all unheard."""
        pause, unheard = FIRST_PAUSE, False
        while True:
            try:
                return await call(items), unheard
            except Exception as error:  # noqa: BLE001 - an adapter's own mistake must not lose what it was given
                self._account.faulted(name, error, items=items)
                unheard = True
            await self._clock.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _hear_refusals(self, items: Sequence[Settlement | Delivery], answers: Sequence[Settled]) -> None:
        refused = SettleStatus.REFUSED
        if not self._refused and not any(answer is not DONE and answer.status is refused for answer in answers):
            return
        for item, (status, why, _) in zip(items, answers, strict=True):
            if status is refused:
                self._refuse(as_settlement(item), why)
            elif self._refused:
                self._refused.pop(id(item), None)

    def _refuse(self, item: Settlement, why: str) -> None:
        if isinstance(item.outcome, GiveUp):
            self._account.letter_refused(item, why, dropped=self._drop_refused)
            if self._drop_refused:
                self._refused.pop(id(item), None)
                self._pending.append(Settlement(item.delivery))
                return
        elif item.output is not None:
            self._pending.append(self._output_refused(item.delivery, why))
            return
        tries = self._refused.get(id(item), (item, 0))[1] + 1
        self._refused[id(item)] = (item, tries)
        task = asyncio.create_task(self._later(item, min(FIRST_PAUSE * 2 ** min(tries, 16), LONGEST_PAUSE)))
        self._again.add(task)
        task.add_done_callback(self._again.discard)

    async def _later(self, item: Settlement, pause: timedelta) -> None:
        await self._clock.sleep(pause)
        self._pending.append(item)
        self.kick()


def _to_settle(batch: Sequence[Ended]) -> Sequence[Settlement | Delivery]:
    """What of these is settled, rows as rows."""
    rows = [item for item in batch if isinstance(item, Row)]
    others = [item for item in batch if not isinstance(item, Row | Release)]
    return InRows(rows, others) if rows else others
