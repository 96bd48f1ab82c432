"""Foreign forms on Kafka: the message as it was, and what failed in headers, as Spring and Kafka Connect write them."""

from collections.abc import Mapping
from typing import Any, Final

from redrive.core.letter import DeadLetter
from redrive.core.message import Headers
from redrive.core.wire.record import Entry, Original, from_record

SPRING: Final = ("kafka_dlt-", "retry_topic-", "kafka_retry_topic-")
CONNECT: Final = "__connect.errors."
_PREFIXES: Final = (*SPRING, CONNECT)
_ALSO_SPRINGS: Final = frozenset({"kafka_deliveryAttempt"})
_WIDEST: Final = 8  # bytes of a number


def is_foreign(headers: Headers) -> bool:
    """Whether Spring or Kafka Connect wrote them."""
    return any(name.startswith(("kafka_dlt-", CONNECT)) for name, _ in headers)


def from_kafka_headers(headers: Headers, payload: bytes, *, entry: Entry) -> DeadLetter:
    """The letter, with what they carry. Its group is none of ours: who consumed it stands in the context.

    What is not about the failure are the message's own headers. Of a name that stands twice the last counts: a message
    that died twice has both, one after the other.
    """
    said = dict(headers)
    record = _of_connect(said) if any(name.startswith(CONNECT) for name in said) else _of_spring(said)
    own = tuple(pair for pair in headers if not pair[0].startswith(_PREFIXES) and pair[0] not in _ALSO_SPRINGS)
    return from_record(record, Original(payload, headers=own), entry=entry)


def _of_spring(said: Mapping[str, bytes]) -> dict[str, Any]:
    def text(name: str) -> str:
        return _text(said.get(f"kafka_dlt-{name}", b""))

    def number(name: str) -> int | None:
        return _number(said.get(f"kafka_dlt-{name}"))

    attempts = _number(said.get("retry_topic-attempts")) or _number(said.get("kafka_deliveryAttempt"))
    return {
        "queue": text("original-topic"),
        "original_message_id": _origin(text("original-topic"), number("original-partition"), number("original-offset")),
        "error_type": text("exception-cause-fqcn") or text("exception-fqcn"),
        "error_message": text("exception-message"),
        "stack": text("exception-stacktrace"),
        "received_at": number("original-timestamp"),
        "retry_count": attempts or 0,
        "context": _without_nothing({"consumer_group": text("original-consumer-group")}),
    }


def _of_connect(said: Mapping[str, bytes]) -> dict[str, Any]:
    def text(name: str) -> str:
        return _text(said.get(f"{CONNECT}{name}", b""))

    topic = text("topic")
    return {
        "queue": topic,
        "original_message_id": f"{topic}-{text('partition')}-{text('offset')}" if topic and text("offset") else "",
        "error_type": text("exception.class.name"),
        "error_message": text("exception.message"),
        "stack": text("exception.stacktrace"),
        "context": _without_nothing(
            {
                "connector": text("connector.name"),
                "task": text("task.id"),
                "stage": text("stage"),
                "class": text("class.name"),
            }
        ),
    }


def _origin(topic: str, partition: int | None, offset: int | None) -> str:
    return "" if not topic or partition is None or offset is None else f"{topic}-{partition}-{offset}"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _number(value: bytes | None) -> int | None:
    """As Java writes it: 4 or 8 bytes, the highest first."""
    return int.from_bytes(value, signed=True) if value and len(value) in (4, _WIDEST) else None


def _without_nothing(context: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in context.items() if value}
