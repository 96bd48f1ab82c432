"""The service: one store, brokers by name, and whoever works between them, in one process.

Nothing here speaks HTTP: `api` stands on it, and so does `redrive collect`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, partial

from prometheus_client import CollectorRegistry

from redrive import wiring
from redrive.clock import SystemClock
from redrive.config import ServiceSettings, Settings
from redrive.core.errors import BrokerError, StoreError
from redrive.core.life import LetterState
from redrive.core.ports import Broker, Clock, Notifier
from redrive.core.ports.cipher import Cipher
from redrive.core.ports.store import Store
from redrive.core.url import mask_url
from redrive.observe.alerts import Alerts
from redrive.observe.bus import Bus
from redrive.observe.event_log import EventLog
from redrive.observe.metrics import Metrics
from redrive.observe.pages import Pages
from redrive.observe.sizes import Sizes, Watched
from redrive.observe.timed_store import timed
from redrive.triage.desk import Desk
from redrive.triage.redriver import Redriver
from redrive.triage.retention import Rule, apply, preview
from redrive.worker.collector import Collector

PURGE_EVERY = timedelta(hours=1)
ANSWER_WITHIN = 2.0
"""Seconds that a dependency has to answer in before it is called away."""

log = logging.getLogger("redrive")


@dataclass(frozen=True, kw_only=True)
class Service:
    """What a request is answered from. Made by `open_service`; a test may make one of a store and brokers alone.

    `brokers` by the name that letters have for them. `queues` are those collected of each broker, None for all.
    `collectors` are those at work in this process. `retention` are the rules by which letters are removed. `cipher`
    opens letters that are kept encrypted. `notifiers` are told of alerts.
    """

    store: Store
    brokers: Mapping[str, Broker]
    queues: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    bus: Bus = field(default_factory=Bus)
    metrics: CollectorRegistry = field(default_factory=CollectorRegistry)
    collectors: Mapping[str, Collector] = field(default_factory=dict)
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    retention: Sequence[Rule] = ()
    cipher: Cipher | None = None
    notifiers: Sequence[Notifier] = ()

    def desk(self, who: str) -> Desk:
        """A desk at the store, in this person's name."""
        return Desk(self.store, self.clock, who, self.cipher, self.bus)

    @cached_property
    def redriver(self) -> Redriver:
        """Who sends letters back: the one that serves, if this process carries out redrives."""
        return Redriver(self.store, self.brokers, clock=self.clock, sink=self.bus, cipher=self.cipher)

    async def ready(self) -> Mapping[str, str | None]:
        """What is wrong with each dependency, or None: `store`, and `broker:<name>` for each broker.

        Takes two seconds at most. Asked twice at once, each dependency is asked once.
        """
        answers = await asyncio.gather(*(probe() for probe in self._probes.values()))
        return dict(zip(self._probes, answers, strict=True))

    @cached_property
    def _probes(self) -> Mapping[str, "_Probe"]:
        brokers = {f"broker:{name}": _Probe(partial(self._ask_broker, name)) for name in self.brokers}
        return {"store": _Probe(self.store.unfinished), **brokers}

    async def _ask_broker(self, name: str) -> None:
        await self.brokers[name].dead_letters("redrive").length()
        collector = self.collectors.get(name)
        if collector is not None and collector.trouble is not None:
            raise BrokerError(f"not collecting: {collector.trouble}")


@asynccontextmanager
async def open_service(
    settings: Settings, *, clock: Clock | None = None, patient: bool = True, create: bool = True
) -> AsyncIterator[Service]:
    """The service that the settings speak of, at work for as long as the block lasts.

    One collector per broker and one redriver over all of them, unless the settings turn either off. A store or broker
    that is away is waited for; a broker that is away at the start only if `patient`. Without `create` an SQLite broker
    that is not there is not begun. Raises `ConfigError`, `MissingExtra`.
    """
    async with AsyncExitStack() as stack:
        service = _made(settings, stack, clock=clock or SystemClock(), create=create)
        redriver = service.redriver if settings.service.redrive else None
        collectors = [*service.collectors.values()]
        working = wiring.way_back(collectors, redriver, clock=service.clock, sink=service.bus, patient=patient)
        await stack.enter_async_context(working)
        yield service


@asynccontextmanager
async def tended(service: Service, settings: Settings) -> AsyncIterator[None]:
    """Measure sizes, tell of alerts, end mutes and apply the rules of retention, each in its time.

    As long as the block lasts.
    """
    tasks = [asyncio.create_task(_sizes(service, settings).run()), asyncio.create_task(_alert(service, settings))]
    if settings.retention:
        tasks.append(asyncio.create_task(_purge(service, _rules(settings))))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _made(settings: Settings, stack: AsyncExitStack, *, clock: Clock, create: bool) -> Service:
    metrics = CollectorRegistry()
    bus = Bus(EventLog(), Metrics(metrics, label=settings.metrics_label))
    store = timed(wiring.open_store(settings.store, clock=clock), clock=clock, sink=bus)
    stack.push_async_callback(store.aclose)
    brokers: dict[str, Broker] = {}
    collectors: dict[str, Collector] = {}
    for place in settings.brokers:
        if create:
            broker = wiring.connect(place.url, name=place.name, clock=clock, sink=bus)
        else:
            broker = wiring.connect_existing(place, clock=clock, sink=bus)
        stack.push_async_callback(broker.aclose)
        brokers[broker.name] = broker
        if settings.service.collect:
            if place.queues is None and not broker.capabilities.lists_all:
                log.info(_SOME_QUEUES, broker.name)
            collectors[broker.name] = wiring.collector(
                broker, store, queues=place.queues, dlqs=place.dlqs, keep=place.keep, clock=clock, sink=bus
            )
    return Service(
        store=store,
        brokers=brokers,
        queues=dict(zip(brokers, (place.queues for place in settings.brokers), strict=True)),
        clock=clock,
        bus=bus,
        metrics=metrics,
        collectors=collectors,
        settings=settings.service,
        retention=_rules(settings),
        cipher=wiring.cipher(settings),
        notifiers=_notifiers(settings, stack, clock=clock),
    )


def _notifiers(settings: Settings, stack: AsyncExitStack, *, clock: Clock) -> Sequence[Notifier]:
    found = wiring.notifiers(settings.alerts, clock=clock)
    for notifier in found:
        stack.push_async_callback(notifier.aclose)
    return found


_SOME_QUEUES = (
    "%s: collecting from the queues that a Redrive worker or producer has used; it cannot list those that only others"
    " use: name them (--queue, or queues in redrive.toml)"
)


def _sizes(service: Service, settings: Settings) -> Sizes:
    brokers = zip(service.brokers.values(), settings.brokers, strict=True)
    watched = [Watched(broker, place.queues, (*place.dlqs, *_shared_dlq(broker))) for broker, place in brokers]
    return Sizes(watched, service.store, clock=service.clock, sink=service.bus)


def _shared_dlq(broker: Broker) -> Sequence[str]:
    """The DLQ of all queues, where there is one: no queue's name tells of it."""
    return () if "{queue}" in broker.capabilities.dlq else (broker.capabilities.dlq,)


async def _alert(service: Service, settings: Settings) -> None:
    alerts = Alerts(
        service.store,
        service.notifiers,
        clock=service.clock,
        sink=service.bus,
        rules=settings.alerts.rules,
        pages=Pages(service.settings.public_url),
    )
    unsubscribe = service.bus.subscribe(alerts.hear)
    try:
        await alerts.run()
    finally:
        unsubscribe()


async def _purge(service: Service, rules: Sequence[Rule]) -> None:
    """Apply the rules of retention now and every hour."""
    desk = service.desk("retention")
    while True:
        try:
            for found in await preview(desk, rules):
                if found.purge.count.number:  # what removes nothing is no act
                    await apply(desk, [found.rule])
        except StoreError as error:
            log.warning("retention: %s", error)
        await service.clock.sleep(PURGE_EVERY)


def _rules(settings: Settings) -> list[Rule]:
    return [
        Rule(older_than=one.older_than, state=LetterState(one.state) if one.state else None, queue=one.queue)
        for one in settings.retention
    ]


class _Probe:
    """A question whose answer may not come: asked once at a time, however many want to know."""

    def __init__(self, ask: Callable[[], Awaitable[object]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[None] | None = None

    async def __call__(self) -> str | None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._asked())
            # An answer that comes too late is nobody's; it is no accident that has to be logged either.
            self._asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        asking = self._asking
        await asyncio.wait([asking], timeout=ANSWER_WITHIN)
        if not asking.done():
            return f"no answer within {ANSWER_WITHIN:g} seconds"
        error = asking.exception()
        return None if error is None else mask_url(str(error) or type(error).__name__)

    async def _asked(self) -> None:
        await self._ask()
