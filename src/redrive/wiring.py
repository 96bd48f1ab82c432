"""The only place that knows adapters: from a URL to a broker.

Each adapter is imported when a URL asks for it; a missing extra names the exact pip command.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TypedDict, Unpack
from urllib.parse import unquote, urlsplit

from redrive.clock import SystemClock
from redrive.core.context import ContextSpec
from redrive.core.errors import ConfigError, QueueNotFound
from redrive.core.policy import RetrySpec
from redrive.core.ports import Broker, Clock, DeadLetterQueue, EventSink
from redrive.core.url import mask_url
from redrive.observe.bus import Bus
from redrive.observe.event_log import EventLog
from redrive.worker.alerting import AlertThreshold
from redrive.worker.dead_letter_queues import AnyLoopDeadLetterQueue, BrokerDeadLetterQueue
from redrive.worker.foreign import MessageRule
from redrive.worker.outcomes import Surroundings
from redrive.worker.wrapper import DeadLetterWrapper


def connect(url: str, *, clock: Clock | None = None, sink: EventSink | None = None, name: str | None = None) -> Broker:
    """The broker at a URL; nothing is opened until it is used. Raises `ConfigError`, `MissingExtra`.

    `name` is the broker's name in letters, part of their identity; by default the URL's scheme.
    """
    scheme = urlsplit(url).scheme
    known = {"sqlite": _sqlite, "memory": _memory}
    if scheme not in known:
        raise ConfigError(f"broker: expected a URL such as {_EXAMPLES}, got {mask_url(url)!r}")
    return known[scheme](url, name or scheme, clock=clock or SystemClock(), sink=sink)


def connect_existing(url: str) -> Broker:
    """As `connect`, for a look: a file that is not there is not begun. Raises `QueueNotFound` instead."""
    if urlsplit(url).scheme == "sqlite" and not (path := _sqlite_path(url)).exists():
        raise QueueNotFound(f"no queue file at {path}; publishing or a worker begins one")
    return connect(url)


_EXAMPLES = "sqlite:///redrive.db (a file here), sqlite:////var/lib/shop.db (an absolute path) or memory://"


def _sqlite(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    from redrive.brokers.sqlite import SqliteBroker

    return SqliteBroker(_sqlite_path(url), name=name, clock=clock, sink=sink)


def _sqlite_path(url: str) -> Path:
    parts = urlsplit(url)
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or parts.query or parts.fragment or path in ("", ":memory:"):
        raise ConfigError(f"broker: expected sqlite:///file.db or sqlite:////absolute/file.db, got {url!r}")
    return Path(path)


def _memory(_url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:  # noqa: ARG001 - one shape
    from redrive.brokers.memory import MemoryBroker

    return MemoryBroker(name=name, clock=clock)


class WrapperOptions(TypedDict, total=False):
    """What `dead_letter(dlq, source=…, …)` accepts beside the queue and its name."""

    retry: RetrySpec
    message: MessageRule | None
    context: ContextSpec | None
    stack: bool


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
    around = Surroundings(clock or SystemClock(), told, Random())  # noqa: S311 - jitter, not secrets
    return DeadLetterWrapper(queue, source=source, around=around, **options)


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop where that extra is installed, else None for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
