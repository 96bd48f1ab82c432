"""The way back: collectors from brokers into a store, and the redriver beside them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random

from redrive.clock import SystemClock
from redrive.core.event import BrokerFaulted
from redrive.core.place import DLQ, queue_of
from redrive.core.ports import Broker, Clock, EventSink
from redrive.core.ports.store import LetterStore
from redrive.observe.bus import Bus
from redrive.observe.event_log import EventLog
from redrive.triage.redriver import Redriver
from redrive.worker.collector import Collector
from redrive.worker.outcomes import Surroundings


def collector(
    broker: Broker,
    store: LetterStore,
    *,
    queues: Sequence[str] | None = None,
    dlqs: Sequence[str] | Mapping[str, str | None] = (),
    keep: bool = False,
    clock: Clock | None = None,
    sink: EventSink | None = None,
) -> Collector:
    """A collector from a broker into a store: of these queues, or of all that have a DLQ, also later; and `dlqs`."""
    around = Surroundings(clock or SystemClock(), sink or Bus(EventLog()), Random())  # noqa: S311 - jitter, not secrets
    if "{queue}" not in broker.capabilities.dlq:  # one for many queues: no queue's name tells of it
        known = dlqs if isinstance(dlqs, Mapping) else dict.fromkeys(dlqs)
        dlqs = {broker.capabilities.dlq: queue_of(DLQ, broker.capabilities.dlq), **known}
    return Collector(broker, store, around=around, queues=queues, dlqs=dlqs, keep=keep)


@asynccontextmanager
async def way_back(
    collectors: Sequence[Collector],
    redriver: Redriver | None,
    *,
    clock: Clock,
    sink: EventSink,
    patient: bool = False,
) -> AsyncIterator[None]:
    """Collect dead letters and carry out redrives for as long as the block lasts.

    What is under way at the end goes on elsewhere, or later. A broker or a store that goes away is waited for; a broker
    that is away at the start too, if `patient`. Raises `BrokerUnavailable` otherwise.
    """
    serving = None
    try:
        for collecting in collectors:
            await collecting.start(patient=patient)
        if redriver is not None:
            serving = asyncio.create_task(_serve(redriver, clock=clock, sink=sink))
        yield
    finally:
        if serving is not None:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        await asyncio.gather(*(collecting.stop() for collecting in collectors))


async def _serve(redriver: Redriver, *, clock: Clock, sink: EventSink) -> None:
    """Keep a redriver going: workers may run beside it, and must not end with it."""
    while True:
        try:
            await redriver.serve()
        except Exception as error:  # noqa: BLE001 - told, and tried again
            sink.emit(BrokerFaulted(at=clock.now(), queue="", call="redrive", why=f"{type(error).__name__}: {error}"))
            await clock.sleep(_REDRIVER_AGAIN)


_REDRIVER_AGAIN = timedelta(seconds=5)
