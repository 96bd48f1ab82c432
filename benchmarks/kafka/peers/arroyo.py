"""Sentry's arroyo: a strategy of two steps, one that handles and one that commits. It has a DLQ and no retry."""

import importlib
from typing import Any

from benchmarks.measure import Meter


def drain(url: str, messages: int) -> dict[str, Any]:
    kafka = importlib.import_module("arroyo.backends.kafka")
    configuration = importlib.import_module("arroyo.backends.kafka.configuration")
    processing = importlib.import_module("arroyo.processing")
    strategies: Any = importlib.import_module("arroyo.processing.strategies")
    meter = Meter(messages)

    def handle(message: Any) -> Any:
        if meter.add(1):
            processor.signal_shutdown()
        return message.payload

    class Factory(strategies.ProcessingStrategyFactory):  # type: ignore[misc] # known only in its environment
        def create_with_partitions(self, commit: Any, partitions: Any) -> Any:  # noqa: ARG002
            return strategies.RunTask(handle, strategies.CommitOffsets(commit))

    settings = configuration.build_kafka_consumer_configuration(
        {}, bootstrap_servers=[url.partition("://")[2]], auto_offset_reset="earliest", group_id="shop"
    )
    processor = processing.StreamProcessor(
        consumer=kafka.KafkaConsumer(settings),
        topic=importlib.import_module("arroyo.types").Topic("orders"),
        processor_factory=Factory(),
        commit_policy=importlib.import_module("arroyo.commit").ONCE_PER_SECOND,
    )
    processor.run()
    return meter.result()
