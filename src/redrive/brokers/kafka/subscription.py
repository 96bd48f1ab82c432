"""One worker's hold on a group."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from redrive.brokers.kafka import alive
from redrive.brokers.kafka.membership import Membership
from redrive.brokers.kafka.names import ALIVE
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.steps import Asked, Steps, do_alone
from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.outcome import Settled, Settlement, as_settlement
from redrive.core.ports import Options
from redrive.core.row import InRows

T = TypeVar("T")


class Answering(NamedTuple):
    """Where an answer is waited for."""

    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[Any]"

    def result(self, value: object) -> None:
        self._tell(self.answer.set_result, value)

    def error(self, error: Exception) -> None:
        self._tell(self.answer.set_exception, error)

    def _tell(self, hear: Callable[[Any], None], word: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
            self.loop.call_soon_threadsafe(hear, word)


def _are_plain(items: Sequence[Settlement | Delivery]) -> bool:
    """Whether these are successes with nothing to write. One that ran alone, by itself, is settled in the book."""
    if isinstance(items, InRows) and items.rows:
        return not items.others
    return {*map(type, items)} == {Delivery} and not as_settlement(items[0]).delivery.alone


class KafkaSubscription:
    """The `Subscription` of the Kafka broker. May be called from several event loops."""

    def __init__(
        self,
        office: Office,
        membership: Membership,
        *,
        options: Options,
        incarnation: str,
        closed: Callable[[Membership], None],
    ) -> None:
        self._office = office
        self._membership = membership
        self._options = options
        self._incarnation = incarnation
        self._closed = closed
        self._open = True
        self._has_beaten = False
        membership.subscriptions.add(self)

    @property
    def incarnation(self) -> str:
        return self._incarnation

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        if limit < 1:
            return ()
        self._membership.start()
        ends_at = self._office.clock.now() + wait
        while True:
            rings = self._membership.bell.rings
            taken = await self._take(limit, exact=wait <= NOW)
            if taken or wait <= NOW:
                return taken
            if self._office.clock.now() >= ends_at:
                await self._call(self._membership.look_for_faults)
                return ()
            await self._news(rings, until=ends_at)

    async def fetch_suspect(self) -> Delivery | None:
        def take() -> Delivery | None:
            now = self._office.clock.now()
            self._membership.book.refresh()
            self._membership.expire(now)
            entry = self._membership.suspects.take(self._options)
            return (
                None
                if entry is None
                else entry.delivery(self._membership.group, now=now, token=entry.token, alone=True)
            )

        return await self._call(take)

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        if not items:
            return ()
        is_plain = not self._options.moves and _are_plain(items)
        self._check_open()
        if is_plain:
            settling = self._begin_plain("settle", self._membership.desk.settling(items, self._options))
        else:
            settling = self._begin(lambda: self._membership.desk.settle(items, self._options))
        answers = await asyncio.shield(settling)
        self._membership.bell.ring()
        return answers

    async def extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        if not deliveries:
            return ()
        return await self._call(lambda: self._membership.extend(deliveries, self._options))

    async def release(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            await self._call(lambda: self._membership.release(deliveries))

    async def heartbeat(self, *, paused: str | None = None) -> int:
        def keep_house() -> int:
            self._office.topics.ensure(ALIVE)
            self._office.outbox.open()
            self._membership.expire(self._office.clock.now())
            self._membership.book.refresh()
            return self._membership.suspects.waiting(self._options.obituary)

        suspects = await self._call(keep_house)
        self._has_beaten = True
        name = self._membership.queue
        await alive.beat(self._office, name, group=self._membership.group, options=self._options, paused=paused)
        return suspects

    async def aclose(self) -> None:
        if not self._open:
            return
        self._open = False
        self._membership.subscriptions.discard(self)
        with contextlib.suppress(BrokerError):  # it is not heard of any more soon after
            if self._has_beaten:
                name = self._membership.queue
                await alive.sign_off(self._office, name, group=self._membership.group, options=self._options)
        if not self._membership.subscriptions and self._membership.is_idle:
            self._closed(self._membership)
            await asyncio.get_running_loop().run_in_executor(None, self._membership.close)

    async def _take(self, limit: int, *, exact: bool) -> Sequence[Delivery]:
        if exact or self._options.moves:
            take = self._membership.catch_up if exact else self._membership.take
            taking = self._begin(lambda: take(limit, self._options))
        else:
            taking = self._begin_plain("take", self._membership.taking(limit, self._options))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._put_back)
            raise

    def _put_back(self, taking: "asyncio.Future[Sequence[Delivery]]") -> None:
        """Whoever asked has gone."""
        if not taking.cancelled() and taking.exception() is None and taking.result():
            self._membership.calls.submit(self._membership.release, taking.result())

    async def _call(self, call: Callable[[], T]) -> T:
        """Have something done; once begun, it is not left undone."""
        self._check_open()
        return await asyncio.shield(self._begin(call))

    def _check_open(self) -> None:
        if self._membership.is_closed:
            raise BrokerUnavailable("kafka: this subscription has been closed")

    def _begin(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """By the thread that may write records."""
        return asyncio.get_running_loop().run_in_executor(self._membership.calls, call)

    def _begin_plain(self, kind: str, steps: Steps[T]) -> "asyncio.Future[T]":
        """By the thread that reads and makes plain commits, one turn earlier; unless it cannot be had."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        if self._membership.post(Asked(kind, steps, Answering(loop, answer))):
            return answer
        return self._begin(lambda: do_alone(steps, self._membership.notes))

    async def _news(self, rings: int, *, until: datetime) -> None:
        """Wait for the next ring of the bell after so many; nobody is woken who does not wait."""
        bell = self._membership.bell
        listener = bell.listen()
        due_at, now = self._membership.next_due_at, self._office.clock.now()
        if due_at is not None and due_at > now:
            until = min(until, due_at)
        sleeping = asyncio.ensure_future(self._office.clock.sleep(max(until - now, NOW)))
        waiting = asyncio.ensure_future(listener[1].wait())
        try:
            if bell.rings == rings:
                await asyncio.wait((sleeping, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            bell.unlisten(listener)
            sleeping.cancel()
            waiting.cancel()
