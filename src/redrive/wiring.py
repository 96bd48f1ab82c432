"""The only place that knows adapters: from a URL to a broker or a store, and what is made of the two.

Each adapter is imported when a URL asks for it; a missing extra names the exact pip command.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Unpack
from urllib.parse import unquote, urlsplit

from redrive.clock import SystemClock
from redrive.config import (
    AlertSettings,
    BrokerSettings,
    KafkaAttemptSettings,
    KafkaSettings,
    Settings,
    load_keys,
    load_settings,
)
from redrive.core.errors import ConfigError, LetterNotFound, QueueNotFound
from redrive.core.event import BrokerFaulted
from redrive.core.place import DLQ, DeadLetterPlace, queue_of
from redrive.core.policy import RetryPolicy, RetrySpec
from redrive.core.ports import AttemptCounter, Broker, Clock, DeadLetterQueue, EventSink, Notifier
from redrive.core.ports.answers import Answers
from redrive.core.ports.cipher import Cipher
from redrive.core.ports.store import LetterStore, Store
from redrive.core.ports.tracing import Tracing
from redrive.core.url import mask_url
from redrive.observe.bus import Bus
from redrive.observe.event_log import EventLog
from redrive.triage.redriver import Redriver
from redrive.worker.alerting import AlertThreshold
from redrive.worker.collector import Collector
from redrive.worker.consumer import Consumer, ConsumerOptions, Treatment
from redrive.worker.crew import Crew, Duty
from redrive.worker.dead_letter_queues import AnyLoopDeadLetterQueue, BrokerDeadLetterQueue
from redrive.worker.foreign import MessageRule
from redrive.worker.outcomes import Surroundings
from redrive.worker.wrapper import DeadLetterWrapper, LetterOptions

if TYPE_CHECKING:
    from redrive.gateway import Gateway


def connect(url: str, *, clock: Clock | None = None, sink: EventSink | None = None, name: str | None = None) -> Broker:
    """The broker at a URL; nothing is opened until it is used. Raises `ConfigError`, `MissingExtra`.

    `name` is the broker's name in letters, part of their identity; by default that of its kind, as `redis`.
    """
    scheme = urlsplit(url).scheme
    kind = "redis" if scheme in REDIS_SCHEMES else _KINDS.get(scheme, scheme)
    known = {"sqlite": _sqlite, "memory": _memory, "redis": _redis, "kafka": _kafka, "nats": _nats}
    known["rabbitmq"] = _rabbitmq
    if kind not in known:
        raise ConfigError(f"broker: expected a URL such as {_EXAMPLES}, got {mask_url(url)!r}")
    return known[kind](url, name or kind, clock=clock or SystemClock(), sink=sink)


def connect_existing(place: BrokerSettings, *, clock: Clock | None = None, sink: EventSink | None = None) -> Broker:
    """The broker of the settings, for a look: a file that is not there is not begun. Raises `QueueNotFound` instead."""
    if urlsplit(place.url).scheme == "sqlite" and not (path := _sqlite_path(place.url)).exists():
        raise QueueNotFound(f"no queue file at {path}; publishing or a worker begins one")
    return connect(place.url, name=place.name, clock=clock, sink=sink)


REDIS_SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "redis+cluster")

_KINDS = {"tls": "nats", "amqp": "rabbitmq", "amqps": "rabbitmq"}
"""Schemes that are not called as the broker is."""

_EXAMPLES = (
    "sqlite:///redrive.db (a file here), sqlite:////var/lib/shop.db (an absolute path), redis://localhost:6379,"
    " kafka://localhost:9092, nats://localhost:4222, amqp://localhost:5672 or memory://"
)


def _sqlite(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.sqlite import SqliteBroker

    return SqliteBroker(_sqlite_path(url), name=name, clock=clock, sink=sink)


def _sqlite_path(url: str, *, what: str = "broker") -> Path:
    parts = urlsplit(url)
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or parts.query or parts.fragment or path in ("", ":memory:"):
        raise ConfigError(f"{what}: expected sqlite:///file.db or sqlite:////absolute/file.db, got {url!r}")
    return Path(path)


def _memory(_url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:  # noqa: ARG001 - one shape
    from redrive.brokers.memory import MemoryBroker

    return MemoryBroker(name=name, clock=clock)


def _redis(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.redis import RedisBroker

    return RedisBroker(url, name=name, clock=clock, sink=sink)


def _kafka(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.kafka import DlqTopic, KafkaBroker

    settings = load_settings().kafka
    dlq = DlqTopic(
        name=_dlq_name(settings) or DLQ,
        partitions=settings.dlq.partitions,
        replication=settings.dlq.replication,
        retention=settings.dlq.retention,
        compression=settings.dlq.compression,
        largest=settings.dlq.max_message,
        form=settings.dlq.form,
    )
    return _counted(KafkaBroker(url, name=name, clock=clock, sink=sink, dlq=dlq), settings.attempts)


def _counted(broker: Broker, attempts: KafkaAttemptSettings) -> Broker:
    """The broker, with attempts counted in Redis too if the settings say so. Raises `ConfigError`, `MissingExtra`."""
    if attempts.redis is None:
        return broker
    from redrive.brokers.counted import counted, field_rule

    counter = attempt_counter(attempts.redis, prefix=attempts.prefix)
    return counted(broker, counter, id_of=None if attempts.field is None else field_rule(attempts.field))


def _nats(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.nats import NatsBroker

    return NatsBroker(url, name=name, clock=clock, sink=sink)


def _rabbitmq(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.rabbitmq import RabbitBroker

    return RabbitBroker(url, name=name, clock=clock, sink=sink)


def _dlq_name(settings: KafkaSettings) -> str | None:
    """What DLQs on Kafka are called, if the settings say so. Raises `ConfigError` for what none can be called."""
    try:
        return DeadLetterPlace(name=settings.dlq.topic).name
    except ConfigError as error:
        raise ConfigError([f"kafka.dlq.topic: {mistake}" for mistake in error.mistakes]) from error


def consumer_defaults(broker: str | Broker) -> ConsumerOptions:
    """What holds for consumers on this broker that do not say it themselves: the settings may have it for Kafka.

    Raises `ConfigError`.
    """
    if not isinstance(broker, str) or urlsplit(broker).scheme != "kafka":
        return {}
    settings = load_settings().kafka
    found: ConsumerOptions = {}
    if settings.dlq.max_attempts is not None:
        found["retry"] = RetryPolicy(max_attempts=settings.dlq.max_attempts)
    if not settings.dlq.enabled:
        found["dlq"] = DeadLetterPlace(enabled=False, off="hold")
    elif (name := _dlq_name(settings)) is not None:
        found["dlq"] = name
    return found


def attempt_counter(url: str, *, prefix: str = "redrive") -> AttemptCounter:
    """A counter of attempts in the Redis at a URL, for messages of any broker. Raises `ConfigError`, `MissingExtra`."""
    if urlsplit(url).scheme not in REDIS_SCHEMES:
        raise ConfigError(f"attempt counter: expected a URL such as redis://localhost:6379, got {mask_url(url)!r}")
    from redrive.brokers.redis import RedisAttemptCounter

    return RedisAttemptCounter(url, prefix=prefix)


def answers(url: str, *, clock: Clock | None = None) -> Answers:
    """Where answers of a durable gateway are kept: an SQLite file, or the Redis at a URL.

    Raises `ConfigError`, `MissingExtra`.
    """
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from redrive.brokers.sqlite.answers import SqliteAnswers

        return SqliteAnswers(_sqlite_path(url, what="answers"), clock=clock or SystemClock())
    if scheme in REDIS_SCHEMES:
        from redrive.brokers.redis.answers import RedisAnswers

        return RedisAnswers(url)
    raise ConfigError(f"answers: expected a URL such as sqlite:///answers.db or redis://…, got {mask_url(url)!r}")


@asynccontextmanager
async def answering(gateway: "Gateway", *, sink: EventSink | None = None) -> AsyncIterator[None]:
    """Answer the requests of a durable gateway, in this process, for as long as the block lasts.

    It is a worker like any other, whose handler makes one attempt: retries, leases, crashes and letters are its own.
    Events go to `sink`, by default to the log. Raises `ConfigError` for a gateway without a broker.
    """
    from redrive.gateway.executor import Executor, consumer_options
    from redrive.gateway.state import tell_states
    from redrive.gateway.ticket import GROUP, queue_of

    durable = gateway.durable
    if durable is None:
        raise ConfigError("gateway: expected an open one with a broker")
    executor = Executor(gateway, durable.answers, clock=durable.clock, arrived=durable.arrived)
    consumers = [
        Consumer(queue_of(name), executor.handle, Treatment.of(consumer_options(gateway.policy, model)))
        for name, model in gateway.models.items()
    ]
    told = Bus(gateway.hear, EventLog() if sink is None else sink.emit)
    around = Surroundings(durable.clock, told, Random(), tracing=durable.tracing)  # noqa: S311 - jitter, not secrets
    crew = Crew(durable.broker, consumers, duty=Duty(group=GROUP), around=around)
    telling = None
    try:
        await crew.start()
        workers = {name: worker.subscription for name, worker in zip(gateway.models, crew.workers, strict=True)}
        telling = asyncio.create_task(tell_states(gateway, workers, clock=durable.clock))
        yield
    finally:
        if telling is not None:
            telling.cancel()
        await crew.stop()


def notifiers(settings: AlertSettings, *, clock: Clock | None = None) -> list[Notifier]:
    """Everybody who is told of incidents. Raises `ConfigError`."""
    from redrive.notifiers.alertmanager import AlertmanagerNotifier

    return [
        AlertmanagerNotifier(url, labels=settings.labels, clock=clock or SystemClock()) for url in settings.alertmanager
    ]


def cipher(settings: Settings) -> Cipher | None:
    """What seals letters and opens them; None if there is no key. Raises `ConfigError`, `MissingExtra`."""
    keys = load_keys(settings.encryption_keys_file)
    if not keys:
        return None
    from redrive.ciphers.aes_gcm import AesGcm

    return AesGcm(keys)


def tracing(broker: Broker) -> Tracing:
    """Spans of what is done with the messages of a broker. Raises `MissingExtra`."""
    from redrive.observe.tracing import OpenTelemetryTracing

    return OpenTelemetryTracing(broker.name)


def open_store(url: str, *, clock: Clock | None = None) -> Store:
    """The letter store at a URL; nothing is opened until it is used. Raises `ConfigError`, `MissingExtra`."""
    scheme = urlsplit(url).scheme
    known = {"sqlite": _sqlite_store, "memory": _memory_store} | dict.fromkeys(POSTGRES_SCHEMES, _postgres_store)
    known |= dict.fromkeys(MONGODB_SCHEMES, _mongodb_store)
    if scheme not in known:
        raise ConfigError(f"store: expected a URL such as {_STORE_EXAMPLES}, got {mask_url(url)!r}")
    return known[scheme](url, clock or SystemClock())


def open_existing_store(url: str, *, clock: Clock | None = None) -> Store:
    """As `open_store`, for a look: a file that is not there is not begun. Raises `LetterNotFound` instead."""
    if urlsplit(url).scheme == "sqlite" and not (path := _sqlite_path(url, what="store")).exists():
        raise LetterNotFound(f"no letter store at {path}; `redrive collect` begins one")
    return open_store(url, clock=clock)


POSTGRES_SCHEMES = ("postgresql", "postgres")
MONGODB_SCHEMES = ("mongodb", "mongodb+srv")

_STORE_EXAMPLES = (
    "sqlite:///letters.db (a file here), sqlite:////var/lib/letters.db (an absolute path),"
    " postgresql://user:password@host/database, mongodb://user:password@host/database or memory://"
)


def _sqlite_store(url: str, clock: Clock) -> Store:
    from redrive.stores.sql import SqlStore

    return SqlStore(_sqlite_path(url, what="store"), clock=clock)


def _postgres_store(url: str, clock: Clock) -> Store:
    from redrive.stores.sql import SqlStore

    return SqlStore(url, clock=clock)


def _mongodb_store(url: str, clock: Clock) -> Store:
    from redrive.stores.mongo import MongoStore

    return MongoStore(url, clock=clock)


def _memory_store(_url: str, clock: Clock) -> Store:
    from redrive.stores.memory import MemoryStore

    return MemoryStore(clock=clock)


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


def is_embedded(broker: str | Broker) -> bool:
    """Whether a broker has no server of its own: then whoever works on it runs the way back too."""
    return isinstance(broker, str) and urlsplit(broker).scheme == "sqlite"


class WrapperOptions(LetterOptions, total=False):
    """What `dead_letter(dlq, source=…, …)` accepts beside the queue and its name."""

    retry: RetrySpec
    message: MessageRule | None


def dead_letter(
    dlq: str | DeadLetterQueue,
    *,
    source: str,
    alert_threshold: int = 100,
    sink: EventSink | None = None,
    clock: Clock | None = None,
    **options: Unpack[WrapperOptions],
) -> DeadLetterWrapper:
    """Retries and dead letters for a handler that another framework runs; use it as a decorator.

    `dlq` is a URL or any `DeadLetterQueue`, `source` the queue that the messages come from. `alert_threshold` letters
    within an hour raise one event. Events go to `sink`, by default to the log. Raises `ConfigError`.
    """
    queue = AnyLoopDeadLetterQueue(lambda: BrokerDeadLetterQueue(connect(dlq))) if isinstance(dlq, str) else dlq
    if isinstance(dlq, str):
        connect(dlq)  # a mistake in the URL is told now, not at the first failure
    told = AlertThreshold(sink or Bus(EventLog()), threshold=alert_threshold)
    seals = cipher(load_settings()) if options.get("payload") == "encrypted" else None
    around = Surroundings(clock or SystemClock(), told, Random(), seals)  # noqa: S311 - jitter, not secrets
    return DeadLetterWrapper(queue, source=source, around=around, **options)


class KafkaDeadLetterQueue(AnyLoopDeadLetterQueue):
    """The DLQs of a Kafka cluster, for `dead_letter(…)`: `{queue}.dlq`, or as the settings say.

    For any event loop and any thread. Raises `ConfigError`, `MissingExtra`.
    """

    def __init__(self, url: str) -> None:
        if urlsplit(url).scheme != "kafka":
            raise ConfigError(f"dlq: expected a URL such as kafka://localhost:9092, got {mask_url(url)!r}")
        connect(url)  # a mistake in the URL is told now, not at the first failure
        super().__init__(lambda: BrokerDeadLetterQueue(connect(url)))


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop where that extra is installed, else None for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


_COLLECT_AFTER = (50_000, 20, 20)


def freeze_startup() -> None:
    """Let garbage collections pass over what exists by now. For a process that is ours, once it is at work.

    A worker makes objects fast enough for a full collection several times a second; each would walk through every
    module that was ever imported. What it makes for each message is gone soon after, and in no cycle: there is little
    to find for a collection, so they are made less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
