"""Dead letters for handlers that another framework runs."""

from collections.abc import Collection
from random import Random
from typing import ClassVar, Unpack
from urllib.parse import urlsplit

from redrive.clock import SystemClock
from redrive.config import load_settings
from redrive.core.errors import ConfigError
from redrive.core.policy import RetrySpec
from redrive.core.ports import Clock, DeadLetterQueue, EventSink
from redrive.core.url import mask_url
from redrive.observe.bus import Bus
from redrive.observe.event_log import EventLog
from redrive.wiring.around import cipher
from redrive.wiring.brokers import connect
from redrive.wiring.counting import REDIS_SCHEMES
from redrive.worker.alerting import AlertThreshold
from redrive.worker.dead_letter_queues import AnyLoopDeadLetterQueue, BrokerDeadLetterQueue
from redrive.worker.foreign import MessageRule
from redrive.worker.outcomes import Surroundings
from redrive.worker.wrapper import DeadLetterWrapper, LetterOptions


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


class _DeadLetterQueueAt(AnyLoopDeadLetterQueue):
    """The DLQs of a broker of one kind. For any event loop and any thread. Raises `ConfigError`, `MissingExtra`."""

    schemes: ClassVar[Collection[str]]
    example: ClassVar[str]

    def __init__(self, url: str) -> None:
        if urlsplit(url).scheme not in self.schemes:
            raise ConfigError(f"dlq: expected a URL such as {self.example}, got {mask_url(url)!r}")
        connect(url)  # a mistake in the URL is told now, not at the first failure
        super().__init__(lambda: BrokerDeadLetterQueue(connect(url)))


class KafkaDeadLetterQueue(_DeadLetterQueueAt):
    """The DLQs of a Kafka cluster, for `dead_letter(…)`: `{queue}.dlq`, or as the settings say.

    For any event loop and any thread. Raises `ConfigError`, `MissingExtra`.
    """

    schemes = ("kafka",)
    example = "kafka://localhost:9092"


class RedisDeadLetterQueue(_DeadLetterQueueAt):
    """The DLQs of a Redis server, sentinel or cluster, for `dead_letter(…)`: `{queue}:dlq`.

    For any event loop and any thread. Raises `ConfigError`, `MissingExtra`.
    """

    schemes = REDIS_SCHEMES
    example = "redis://localhost:6379"
