"""The codes of librdkafka's own errors, which begin with an underscore where they come from."""

# ruff: noqa: SLF001 - they have no other name

from typing import Final

from confluent_kafka import KafkaError

ALL_BROKERS_DOWN: Final = KafkaError._ALL_BROKERS_DOWN
ASSIGNMENT_LOST: Final = KafkaError._ASSIGNMENT_LOST
AUTHENTICATION: Final = KafkaError._AUTHENTICATION
DESTROY_BROKER: Final = KafkaError._DESTROY_BROKER
FATAL: Final = KafkaError._FATAL
FENCED: Final = KafkaError._FENCED
INVALID_ARG: Final = KafkaError._INVALID_ARG
MSG_TIMED_OUT: Final = KafkaError._MSG_TIMED_OUT
NOT_IMPLEMENTED: Final = KafkaError._NOT_IMPLEMENTED
NO_OFFSET: Final = KafkaError._NO_OFFSET
PARTITION_EOF: Final = KafkaError._PARTITION_EOF
PURGE_INFLIGHT: Final = KafkaError._PURGE_INFLIGHT
PURGE_QUEUE: Final = KafkaError._PURGE_QUEUE
QUEUE_FULL: Final = KafkaError._QUEUE_FULL
RESOLVE: Final = KafkaError._RESOLVE
STATE: Final = KafkaError._STATE
TIMED_OUT: Final = KafkaError._TIMED_OUT
TIMED_OUT_QUEUE: Final = KafkaError._TIMED_OUT_QUEUE
TRANSPORT: Final = KafkaError._TRANSPORT
UNKNOWN_PARTITION: Final = KafkaError._UNKNOWN_PARTITION
UNKNOWN_TOPIC: Final = KafkaError._UNKNOWN_TOPIC
WAIT_COORD: Final = KafkaError._WAIT_COORD
