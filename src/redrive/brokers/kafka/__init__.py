"""Kafka: transactions instead of hope. The log stays the truth; what a log cannot say is written down beside it."""

from importlib.util import find_spec

from redrive.core.errors import MissingExtra

if find_spec("confluent_kafka") is None:
    raise MissingExtra("kafka", extra="kafka")

from redrive.brokers.kafka.broker import KafkaBroker
from redrive.brokers.kafka.dlq_topic import DlqTopic

__all__ = ["DlqTopic", "KafkaBroker"]
