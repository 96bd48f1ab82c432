"""Settings of the Kafka adapter: how DLQs are begun and written, and where attempts are counted if not in Kafka."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal

from redrive.config.kinds import DURATION, FLAG, SIZE, TEXT, Kind, one_of, url, whole

UNLIMITED: Final = "unlimited"
Form = Literal["fields", "embedded"]
Compression = Literal["snappy", "gzip", "lz4", "zstd", "uncompressed", "producer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaDlqSettings:
    """DLQs on Kafka. `topic` is a name for all queues, or a pattern with `{queue}`; None is `{queue}.dlq`.

    Unless `enabled`, what is given up is held in the broker.
    `max_attempts` is for consumers that do not say themselves how often they try. Without `replication` there are
    three copies, or as many as there are brokers. A `retention` of None is for ever; `max_message` is bytes. `group` is
    the consumer group of collectors on Kafka, for all DLQs; None is `{dlq}..redrive`, one for each.
    """

    enabled: bool = True
    topic: str | None = None
    max_attempts: int | None = None
    partitions: int = 3
    replication: int | None = None
    retention: timedelta | None = timedelta(days=30)
    compression: Compression = "snappy"
    max_message: int = 2_097_152
    form: Form = "fields"
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAttemptSettings:
    """Attempts counted in the Redis at this URL, under `{prefix}:retry_count:{id}`; in Kafka itself without one.

    The id is that of the message, topic-partition-offset, or what stands in `field` of its JSON payload.
    """

    redis: str | None = None
    prefix: str = "redrive"
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """What is set for all Kafka brokers."""

    dlq: KafkaDlqSettings = field(default_factory=KafkaDlqSettings)
    attempts: KafkaAttemptSettings = field(default_factory=KafkaAttemptSettings)


def _retention(value: Any) -> timedelta | None:
    if value == UNLIMITED:
        return None
    found: timedelta = DURATION.check(value)
    if not found:
        raise ValueError(value)
    return found


KAFKA_KINDS: Final[dict[str, Kind]] = {
    "kafka.dlq.enabled": FLAG,
    "kafka.dlq.topic": TEXT,
    "kafka.dlq.max_attempts": whole(1, 1_000_000),
    "kafka.dlq.partitions": whole(1, 10_000),
    "kafka.dlq.replication": whole(1, 100),
    "kafka.dlq.retention": Kind(f'a length of time such as "30d", or "{UNLIMITED}"', _retention),
    "kafka.dlq.compression": one_of("snappy", "gzip", "lz4", "zstd", "uncompressed", "producer"),
    "kafka.dlq.max_message": SIZE,
    "kafka.dlq.form": one_of("fields", "embedded"),
    "kafka.dlq.group": TEXT,
    "kafka.attempts.redis": url("redis://localhost:6379"),
    "kafka.attempts.prefix": TEXT,
    "kafka.attempts.field": TEXT,
}

KAFKA_VARIABLES: Final = {
    "KAFKA_DLQ_TOPIC": "kafka.dlq.topic",
    "KAFKA_MAX_RETRIES_BEFORE_DLQ": "kafka.dlq.max_attempts",
}
"""What the world calls these already; ours win. Their `retries` are attempts: 3 of them, and the third is the last."""
