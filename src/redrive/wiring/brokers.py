"""From a URL to a broker."""

from urllib.parse import urlsplit

from redrive.clock import SystemClock
from redrive.config import BrokerSettings
from redrive.core.errors import ConfigError, QueueNotFound
from redrive.core.ports import Broker, Clock, EventSink
from redrive.core.url import mask_url
from redrive.wiring.counting import REDIS_SCHEMES
from redrive.wiring.files import sqlite_path
from redrive.wiring.kafka import connect_kafka


def connect(url: str, *, clock: Clock | None = None, sink: EventSink | None = None, name: str | None = None) -> Broker:
    """The broker at a URL; nothing is opened until it is used. Raises `ConfigError`, `MissingExtra`.

    `name` is the broker's name in letters, part of their identity; by default that of its kind, as `redis`.
    """
    scheme = urlsplit(url).scheme
    kind = "redis" if scheme in REDIS_SCHEMES else _KINDS.get(scheme, scheme)
    known = {"sqlite": _sqlite, "memory": _memory, "redis": _redis, "kafka": connect_kafka, "nats": _nats}
    known["rabbitmq"] = _rabbitmq
    if kind not in known:
        raise ConfigError(f"broker: expected a URL such as {_EXAMPLES}, got {mask_url(url)!r}")
    return known[kind](url, name or kind, clock=clock or SystemClock(), sink=sink)


def connect_existing(place: BrokerSettings, *, clock: Clock | None = None, sink: EventSink | None = None) -> Broker:
    """The broker of the settings, for a look: a file that is not there is not begun. Raises `QueueNotFound` instead."""
    if urlsplit(place.url).scheme == "sqlite" and not (path := sqlite_path(place.url, what="broker")).exists():
        raise QueueNotFound(f"no queue file at {path}; publishing or a worker begins one")
    return connect(place.url, name=place.name, clock=clock, sink=sink)


_KINDS = {"tls": "nats", "amqp": "rabbitmq", "amqps": "rabbitmq"}
"""Schemes that are not called as the broker is."""

_EXAMPLES = (
    "sqlite:///redrive.db (a file here), sqlite:////var/lib/shop.db (an absolute path), redis://localhost:6379,"
    " kafka://localhost:9092, nats://localhost:4222, amqp://localhost:5672 or memory://"
)


def _sqlite(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.sqlite import SqliteBroker

    return SqliteBroker(sqlite_path(url, what="broker"), name=name, clock=clock, sink=sink)


def _memory(_url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:  # noqa: ARG001 - one shape
    from redrive.brokers.memory import MemoryBroker

    return MemoryBroker(name=name, clock=clock)


def _redis(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.redis import RedisBroker

    return RedisBroker(url, name=name, clock=clock, sink=sink)


def _nats(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.nats import NatsBroker

    return NatsBroker(url, name=name, clock=clock, sink=sink)


def _rabbitmq(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.rabbitmq import RabbitBroker

    return RabbitBroker(url, name=name, clock=clock, sink=sink)


def is_embedded(broker: str | Broker) -> bool:
    """Whether a broker has no server of its own: then whoever works on it runs the way back too."""
    return isinstance(broker, str) and urlsplit(broker).scheme == "sqlite"
