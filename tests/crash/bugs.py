"""Planted bugs: each is a mistake that real consumers make, and each must turn the checker red.

A harness that passes one of these proves nothing about the code that it passes too.
"""

import heapq
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import cast

from redrive.core.delivery import Delivery
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.outcome import ACK, DONE, RetryLater, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.ports import Broker, Subscription
from redrive.core.wire import to_fields
from tests.crash.passing import Passing
from tests.crash.scenario import Site

BETWEEN = "between the letter and its ack"


class Bug(Passing):
    """A subscription with something wrong."""

    def __init__(self, inner: Subscription, *, broker: Broker, queue: str, site: Site) -> None:
        super().__init__(inner)
        self._dlq = broker.dead_letters(queue)
        self._broker = broker
        self._site = site

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        return await self._settle([as_settlement(item) for item in items])

    async def _settle(self, items: Sequence[Settlement]) -> Sequence[Settled]:
        return await self._inner.settle(items)

    async def _copy_to_dlq(self, letter: DeadLetter) -> None:
        """Write a letter as a program without a key for it would: as one more message."""
        body = letter.payload or b""
        await self._broker.publish(self._dlq.name, [Message("", self._dlq.name, body, to_fields(letter), letter.key)])


class GoneAtFetch(Bug):
    """Acks what it fetches before any handler has run."""

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        deliveries = await self._inner.fetch(limit, wait=wait)
        await self._inner.settle([Settlement(delivery) for delivery in deliveries])
        return deliveries

    async def fetch_suspect(self) -> Delivery | None:
        delivery = await self._inner.fetch_suspect()
        await self._inner.settle([] if delivery is None else [Settlement(delivery)])
        return delivery

    async def _settle(self, items: Sequence[Settlement]) -> Sequence[Settled]:
        return [DONE] * len(items)


class LetterThenAck(Bug):
    """Gives up in two steps: a copy into the DLQ, then an ack. A process may die in between."""

    async def _settle(self, items: Sequence[Settlement]) -> Sequence[Settled]:
        for item in items:
            if item.letter is not None:
                await self._copy_to_dlq(item.letter)
                self._site.points.reach(BETWEEN)
        plain = [item._replace(outcome=ACK, letter=None) if item.letter is not None else item for item in items]
        return await self._inner.settle(plain)


class DeliveriesAsAttempts(Bug):
    """Takes the number of deliveries for the number of attempts, so that a crash spends one."""

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        return [self._counted(delivery) for delivery in await self._inner.fetch(limit, wait=wait)]

    async def fetch_suspect(self) -> Delivery | None:
        delivery = await self._inner.fetch_suspect()
        return None if delivery is None else self._counted(delivery)

    def _counted(self, delivery: Delivery) -> Delivery:
        path = self._site.folder / "deliveries"
        with path.open("ab", buffering=0) as file:
            file.write(f"{delivery.message.origin_id}\n".encode())
        deliveries = path.read_text().splitlines().count(delivery.message.origin_id)
        return delivery._replace(failures=deliveries - 1)


class NoFence(Bug):
    """Writes its letter even if the message has passed to somebody else."""

    async def _settle(self, items: Sequence[Settlement]) -> Sequence[Settled]:
        answers = await self._inner.settle(items)
        for item, answer in zip(items, answers, strict=True):
            if answer.status is SettleStatus.LOST and item.letter is not None:
                await self._copy_to_dlq(item.letter)
        return answers


class SuspectsInTheCrowd(Bug):
    """Takes what a dead worker had in hand in one go, and runs all of it at once."""

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        taken: list[Delivery] = []
        while len(taken) < limit and (delivery := await self._inner.fetch_suspect()) is not None:
            taken.append(delivery)
        return taken or await self._inner.fetch(limit, wait=wait)

    async def heartbeat(self, *, paused: str | None = None) -> int:
        await self._inner.heartbeat(paused=paused)
        return 0


class RetryInMemory(Bug):
    """Acks a message that failed, and remembers by itself to run it again."""

    def __init__(self, inner: Subscription, *, broker: Broker, queue: str, site: Site) -> None:
        super().__init__(inner, broker=broker, queue=queue, site=site)
        self._due: list[tuple[float, int, Delivery]] = []
        self._number = count()

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        if self._due and self._due[0][0] <= time.monotonic():
            return [heapq.heappop(self._due)[2]]
        soon = timedelta(seconds=self._site.scenario.retry_delay)
        return await self._inner.fetch(limit, wait=min(wait, soon))

    async def _settle(self, items: Sequence[Settlement]) -> Sequence[Settled]:
        for item in items:
            if isinstance(item.outcome, RetryLater):
                delay = (item.outcome.delay or timedelta(0)).total_seconds()
                again = item.delivery._replace(failures=item.delivery.failures + 1, trail=item.trail, token=None)
                heapq.heappush(self._due, (time.monotonic() + delay, next(self._number), again))
        ours = [item for item in items if item.delivery.token is not None]
        await self._inner.settle([Settlement(item.delivery) for item in ours])
        return [DONE] * len(items)

    async def extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        return await self._inner.extend([delivery for delivery in deliveries if delivery.token is not None])


class TextOnly(Bug):
    """Takes every payload for text."""

    async def _settle(self, items: Sequence[Settlement]) -> Sequence[Settled]:
        return await self._inner.settle([item._replace(letter=self._as_text(item.letter)) for item in items])

    def _as_text(self, letter: DeadLetter | None) -> DeadLetter | None:
        if letter is None:
            return None
        return replace(letter, payload=(letter.payload or b"").decode(errors="replace").encode())


BUGS = {
    bug.__name__: bug
    for bug in (
        GoneAtFetch,
        LetterThenAck,
        DeliveriesAsAttempts,
        NoFence,
        SuspectsInTheCrowd,
        RetryInMemory,
        TextOnly,
    )
}


def plant(inner: Subscription, *, broker: Broker, queue: str, site: Site) -> Subscription:
    """The subscription with the bug that the run asks for."""
    return cast("Subscription", BUGS[site.scenario.bug](inner, broker=broker, queue=queue, site=site))
