"""A broker with named points around its calls; everything else is passed on."""

import importlib
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, cast

from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.message import Message
from redrive.core.outcome import ACK, GiveUp, Settled, Settlement, SettleStatus, as_settlement
from redrive.core.ports import Broker, Options, Subscription
from redrive.wiring import connect
from tests.crash import bugs
from tests.crash.journal import Word
from tests.crash.passing import Passing
from tests.crash.plan import Plan
from tests.crash.scenario import Site


def open_broker(site: Site) -> Broker:
    """The broker of a run, staged as its adapter wants it, and with the run's planted bug if it has one."""
    if site.scenario.module:
        importlib.import_module(site.scenario.module).set_stage(site)
    return cast("Broker", StagedBroker(connect(site.scenario.url), site=site))


class StagedBroker:
    """A broker whose subscriptions are staged, and whose publish has points around it."""

    def __init__(self, inner: Broker, *, site: Site) -> None:
        self._inner = inner
        self._site = site

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def publish(self, queue: str, messages: Sequence[Message], *, delay: timedelta = NOW) -> Sequence[str]:
        self._site.points.reach("before a publish")
        ids = await self._inner.publish(queue, messages, delay=delay)
        self._site.points.reach("after a publish, before its answer")
        return ids

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        inner = await self._inner.subscribe(queue, group=group, options=options)
        if self._site.scenario.bug in bugs.BUGS:
            inner = bugs.plant(inner, broker=self._inner, queue=queue, site=self._site)
        return cast("Subscription", StagedSubscription(inner, site=self._site))


class StagedSubscription(Passing):
    """A subscription with points around fetch and settle. What runs alone has points of its own.

    A suspect is struck at most once: a message whose process dies `crash_limit` times is given up, and rightly so.
    """

    def __init__(self, inner: Subscription, *, site: Site) -> None:
        super().__init__(inner)
        self._site = site
        self._reach = site.points.reach
        self._ended: set[tuple[str, int]] = set()  # attempts of which the answer to their outcome tells what is lost

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        deliveries = await self._inner.fetch(limit, wait=wait)
        if deliveries:
            self._reach("fetched, not started", _ids(deliveries))
        return deliveries

    async def fetch_suspect(self) -> Delivery | None:
        delivery = await self._inner.fetch_suspect()
        if delivery is not None and not delivery.crashes:
            self._reach("suspect taken, not started", _ids([delivery]))
        return delivery

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        settlements = [as_settlement(item) for item in items]
        alone = any(item.delivery.alone for item in settlements)
        kinds = {_kind(item): item.delivery for item in settlements}
        if not alone:
            for kind, delivery in kinds.items():
                self._reach(f"before {kind}", _ids([delivery]))
        elif not any(item.delivery.crashes for item in settlements):
            self._reach("suspect done, not settled", _ids(item.delivery for item in settlements))
        self._ended.update(_attempt(item.delivery) for item in settlements)
        answers = await self._inner.settle(items)
        for item, answer in zip(settlements, answers, strict=True):
            if answer.status is SettleStatus.LOST:
                self._note_fenced(item.delivery)
        if alone:
            self._reach("suspect settled, before the answer")
            return answers
        for kind, delivery in kinds.items():
            self._reach(f"after {kind}, before its answer", _ids([delivery]))
        return answers

    async def extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        lost = await self._inner.extend(deliveries)
        for delivery in lost:
            if _attempt(delivery) not in self._ended:
                self._note_fenced(delivery)
        return lost

    def _note_fenced(self, delivery: Delivery) -> None:
        self._site.journal.note(Word.FENCED, id=_name_of(delivery))


def _attempt(delivery: Delivery) -> tuple[str, int]:
    return delivery.message.id, delivery.attempt


def _name_of(delivery: Delivery) -> str:
    plan = Plan.of(delivery.message.body)
    return "" if plan is None else plan.id


def _ids(deliveries: Iterable[Delivery]) -> Iterable[str]:
    return (_name_of(delivery) for delivery in deliveries)


def _kind(item: Settlement) -> str:
    if item.outcome is ACK:
        return "an ack"
    return "a give-up" if isinstance(item.outcome, GiveUp) else "a retry"
