"""A broker whose failures are counted elsewhere too: by an `AttemptCounter` that others may share.

A count that is lost elsewhere costs nothing: the broker's own is never passed over. While the counter does not answer,
nothing is settled: the worker keeps what it holds, and its `Alive` record says why.
"""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, cast

from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerUnavailable, RedriveError
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.ports import AttemptCounter, Broker, Options, Subscription

IdRule = Callable[[Message], str]


def counted(broker: Broker, counter: AttemptCounter, *, id_of: IdRule | None = None) -> Broker:
    """The same broker; consumers of it have their failures counted, under the message's id unless told otherwise.

    What moves letters into a store is not counted. Closing it closes the counter too.
    """
    return cast("Broker", _CountedBroker(broker, counter, id_of or (lambda message: message.id)))


def field_rule(name: str) -> IdRule:
    """What stands in this field of a JSON payload; the message's id where there is none."""

    def id_of(message: Message) -> str:
        try:
            found = json.loads(message.body)[name]
        except (ValueError, TypeError, KeyError, RecursionError):
            return message.id
        return f"{found}" if isinstance(found, str | int) and found != "" else message.id

    return id_of


class _CountedBroker:
    def __init__(self, broker: Broker, counter: AttemptCounter, id_of: IdRule) -> None:
        self._broker = broker
        self._counter = counter
        self._id_of = id_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        inner = await self._broker.subscribe(queue, group=group, options=options)
        if options.moves:
            return inner
        return cast("Subscription", _CountedSubscription(inner, self._counter, self._id_of))

    async def aclose(self) -> None:
        await self._broker.aclose()
        await self._counter.aclose()


class _CountedSubscription:
    """Failures are read when a message is handed out, added before they are settled, and forgotten after its end.

    An answer that was lost may count one failure twice, never one too few.
    """

    def __init__(self, inner: Subscription, counter: AttemptCounter, id_of: IdRule) -> None:
        self._inner = inner
        self._counter = counter
        self._id_of = id_of
        self._away: str | None = None
        self._added: set[tuple[str, int]] = set()
        self._ended: dict[str, None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        if self._away is not None:
            await self._count([])  # before anything is taken into hand
        deliveries = await self._inner.fetch(limit, wait=wait)
        try:
            return await self._told(deliveries)
        except BaseException:  # whoever asked may have gone too
            await self._inner.release(deliveries)
            raise

    async def fetch_suspect(self) -> Delivery | None:
        if self._away is not None:
            await self._count([])
        delivery = await self._inner.fetch_suspect()
        if delivery is None:
            return None
        try:
            return (await self._told([delivery]))[0]
        except BaseException:  # whoever asked may have gone too
            await self._inner.release([delivery])
            raise

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        settlements = [as_settlement(item) for item in items]
        await self._add([item.delivery for item in settlements if isinstance(item.outcome, RetryLater)])
        answers = await self._inner.settle(items)
        for item, answer in zip(settlements, answers, strict=True):
            if answer.status in (SettleStatus.DONE, SettleStatus.REPEATED):
                self._added.discard((item.delivery.message.id, item.delivery.failures))
                if not isinstance(item.outcome, RetryLater) and item.delivery.failures:
                    self._ended[self._id_of(item.delivery.message)] = None
        await self._forget()
        return answers

    async def heartbeat(self, *, paused: str | None = None) -> int:
        return await self._inner.heartbeat(paused=paused or self._away)

    async def _told(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        if not deliveries:
            return deliveries
        counts = await self._count([self._id_of(delivery.message) for delivery in deliveries])
        return [
            delivery._replace(failures=count) if count > delivery.failures else delivery
            for delivery, count in zip(deliveries, counts, strict=True)
        ]

    async def _add(self, failed: Sequence[Delivery]) -> None:
        """Count what has failed, each failure once in this process; or see whether somebody could have counted."""
        new = [one for one in failed if (one.message.id, one.failures) not in self._added]
        if not new:
            await self._count([])
        for delivery in new:
            await self._ask(partial(self._counter.add, self._id_of(delivery.message)))
            self._added.add((delivery.message.id, delivery.failures))

    async def _forget(self) -> None:
        """Begin again at 0 with what has ended; whoever cannot be told now is told with the next."""
        for message_id in [*self._ended]:
            try:
                await self._counter.forget(message_id)
            except RedriveError:
                return
            del self._ended[message_id]

    async def _count(self, message_ids: Sequence[str]) -> Sequence[int]:
        found: Sequence[int] = await self._ask(lambda: self._counter.counts(message_ids))
        return found

    async def _ask(self, call: Callable[[], Any]) -> Any:
        try:
            answer = await call()
        except RedriveError as error:
            self._away = f"attempts cannot be counted: {error}"
            raise BrokerUnavailable(self._away) from error
        self._away = None
        return answer
