"""Letters of Spring and of Kafka Connect, as they write them."""

from datetime import UTC, datetime

from redrive.core.letter import DeadLetter
from redrive.core.reason import Reason
from redrive.core.wire import read_letter

AT = datetime(2026, 1, 2, tzinfo=UTC)

SPRING = (
    ("content-type", b"application/json"),
    ("kafka_dlt-original-topic", b"orders"),
    ("kafka_dlt-original-partition", (2).to_bytes(4)),
    ("kafka_dlt-original-offset", (4711).to_bytes(8)),
    ("kafka_dlt-original-timestamp", (1_767_225_600_000).to_bytes(8)),
    ("kafka_dlt-original-timestamp-type", b"CreateTime"),
    ("kafka_dlt-original-consumer-group", b"billing"),
    ("kafka_dlt-exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
    ("kafka_dlt-exception-cause-fqcn", b"java.lang.IllegalStateException"),
    ("kafka_dlt-exception-message", b"no customer"),
    ("kafka_dlt-exception-stacktrace", b"java.lang.IllegalStateException: no customer\n\tat shop.Billing"),
    ("retry_topic-attempts", (3).to_bytes(4)),
    ("kafka_deliveryAttempt", (1).to_bytes(4)),
)
CONNECT = (
    ("trace", b"t"),
    ("__connect.errors.topic", b"orders"),
    ("__connect.errors.partition", b"2"),
    ("__connect.errors.offset", b"4711"),
    ("__connect.errors.connector.name", b"warehouse"),
    ("__connect.errors.task.id", b"0"),
    ("__connect.errors.stage", b"VALUE_CONVERTER"),
    ("__connect.errors.class.name", b"org.apache.kafka.connect.json.JsonConverter"),
    ("__connect.errors.exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
    ("__connect.errors.exception.message", b"not JSON"),
    ("__connect.errors.exception.stacktrace", b"DataException: not JSON"),
)


def read(headers: tuple[tuple[str, bytes], ...], body: bytes = b"\xff") -> DeadLetter:
    return read_letter(body, headers, queue="legacy", entry_id="0-1", now=AT, broker="kafka", key=b"k")


def test_a_letter_of_spring_says_what_failed_where_it_came_from_and_how_often_it_was_tried() -> None:
    letter = read(SPRING)

    assert (letter.queue, letter.original_message_id) == ("orders", "orders-2-4711")
    assert (letter.error_type, letter.error_message) == ("java.lang.IllegalStateException", "no customer")
    assert letter.stack == "java.lang.IllegalStateException: no customer\n\tat shop.Billing"
    assert (letter.retry_count, letter.received_at, letter.failed_at) == (3, datetime(2026, 1, 1, tzinfo=UTC), AT)
    assert (letter.reason, letter.group, letter.context) == (Reason.UNKNOWN, "", {"consumer_group": "billing"})
    assert (letter.payload, letter.key, letter.headers) == (b"\xff", b"k", (("content-type", b"application/json"),))


def test_a_letter_of_kafka_connect_says_which_connector_failed_at_which_stage() -> None:
    letter = read(CONNECT)

    assert (letter.queue, letter.original_message_id) == ("orders", "orders-2-4711")
    assert letter.error_type == "org.apache.kafka.connect.errors.DataException"
    assert (letter.error_message, letter.stack) == ("not JSON", "DataException: not JSON")
    assert letter.context == {
        "connector": "warehouse",
        "task": "0",
        "stage": "VALUE_CONVERTER",
        "class": "org.apache.kafka.connect.json.JsonConverter",
    }
    assert (letter.payload, letter.key, letter.headers) == (b"\xff", b"k", (("trace", b"t"),))


def test_what_only_says_that_it_failed_is_a_letter_of_the_queue_in_whose_dlq_it_is() -> None:
    letter = read((("kafka_dlt-exception-message", b"\xffoops"),))

    assert (letter.queue, letter.error_type, letter.error_message) == ("legacy", "unknown", "\\xffoops")
    assert (letter.original_message_id, letter.retry_count, letter.received_at) == ("", 0, None)


def test_numbers_that_are_none_are_not_known() -> None:
    broken = tuple(
        (name, b"x" if "-o" in name and name != "kafka_dlt-original-topic" else value) for name, value in SPRING
    )

    assert (read(broken).original_message_id, read(broken).received_at) == ("", None)


def test_of_a_message_that_died_twice_the_last_death_is_told() -> None:
    again = (*SPRING, ("kafka_dlt-exception-message", b"no stock"))

    assert read(again).error_message == "no stock"


def test_reading_it_again_gives_the_same_letter() -> None:
    assert read(SPRING).letter_id == read(SPRING).letter_id != read(SPRING, body=b"other").letter_id
