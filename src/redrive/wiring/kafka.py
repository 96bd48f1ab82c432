"""What the settings say of Kafka: its DLQs, its counter of attempts, and consumers on it."""

from urllib.parse import urlsplit

from redrive.config import KafkaAttemptSettings, KafkaSettings, load_settings
from redrive.core.errors import ConfigError
from redrive.core.place import DLQ, DeadLetterPlace
from redrive.core.policy import RetryPolicy
from redrive.core.ports import Broker, Clock, EventSink
from redrive.wiring.counting import attempt_counter
from redrive.worker.consumer import ConsumerOptions


def connect_kafka(url: str, name: str, *, clock: Clock, sink: EventSink | None) -> Broker:
    """The broker of a Kafka cluster, as the settings have it. Raises `ConfigError`, `MissingExtra`."""
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
        group=settings.dlq.group,
    )
    return _counted(KafkaBroker(url, name=name, clock=clock, sink=sink, dlq=dlq), settings.attempts)


def _counted(broker: Broker, attempts: KafkaAttemptSettings) -> Broker:
    """The broker, with attempts counted in Redis too if the settings say so. Raises `ConfigError`, `MissingExtra`."""
    if attempts.redis is None:
        return broker
    from redrive.brokers.counted import counted, field_rule

    counter = attempt_counter(attempts.redis, prefix=attempts.prefix)
    return counted(broker, counter, id_of=None if attempts.field is None else field_rule(attempts.field))


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
