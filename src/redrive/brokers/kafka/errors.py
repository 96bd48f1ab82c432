"""The one place where Kafka's exceptions become ours."""

from typing import Final

from confluent_kafka import KafkaError, KafkaException

from redrive.brokers.kafka import codes
from redrive.core.errors import BrokerError, BrokerUnavailable, ConfigError, QueueNotFound

_FOR_NOW: Final = frozenset(
    {
        codes.DESTROY_BROKER,
        codes.TRANSPORT,
        codes.ALL_BROKERS_DOWN,
        codes.TIMED_OUT,
        codes.TIMED_OUT_QUEUE,
        codes.MSG_TIMED_OUT,
        codes.RESOLVE,
        codes.WAIT_COORD,
        codes.NO_OFFSET,
        codes.STATE,
        codes.FENCED,
        codes.QUEUE_FULL,
        codes.PURGE_QUEUE,
        codes.PURGE_INFLIGHT,
        codes.ASSIGNMENT_LOST,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    }
)
PASSING: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
"""What a cluster says for a moment after something was begun, or has changed its place."""

GONE: Final = frozenset({codes.TIMED_OUT, codes.TRANSPORT, codes.DESTROY_BROKER})
"""What a client says of a broker that does not answer any more. Another one may have taken its place."""

UNKNOWN: Final = frozenset({codes.UNKNOWN_TOPIC, codes.UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART})
"""What a broker says of a topic that is not there, or that it has not heard of yet while others have."""

_REFUSED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the broker does not permit this to the user",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "the broker does not permit this group to the user",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the broker does not permit this to the user",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the broker does not permit transactions to the user",
    KafkaError.SASL_AUTHENTICATION_FAILED: "the broker does not accept this user and password",
    codes.AUTHENTICATION: "the broker does not accept this user and password",
    KafkaError.MSG_SIZE_TOO_LARGE: "a message is larger than its topic takes",
}


def error_of(error: BaseException) -> KafkaError | None:
    """Kafka's own account of what is wrong, if it is one."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return error.args[0]
    return None


def code_of(error: BaseException) -> int | None:
    """The number of Kafka's error."""
    found = error_of(error)
    return None if found is None else found.code()


def translate(error: BaseException) -> BaseException:
    """The exception to raise instead: Kafka's become ours, every other one stays what it is."""
    found = error_of(error)
    if found is None:
        return error
    code, text = found.code(), found.str()
    ours: BrokerError | ConfigError
    if code in UNKNOWN:
        ours = QueueNotFound(f"kafka: no topic of this name ({text})")
    elif code in _REFUSED:
        ours = BrokerError(f"kafka: {_REFUSED[code]} ({text})")
    elif code in (codes.INVALID_ARG, codes.NOT_IMPLEMENTED):
        ours = ConfigError(f"kafka: {text}")
    elif code in _FOR_NOW or found.retriable() or found.txn_requires_abort():
        ours = BrokerUnavailable(f"kafka: no service for now ({found.name()}: {text})")
    else:
        ours = BrokerError(f"kafka: {found.name()}: {text}")
    ours.__cause__ = error
    return ours
