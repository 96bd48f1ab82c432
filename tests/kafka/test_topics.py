"""How topics are begun, and what is asked of those that were just begun."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from redrive.brokers.kafka import codes
from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.dlq_topic import DlqTopic
from redrive.brokers.kafka.errors import translate
from redrive.brokers.kafka.insisting import insist
from redrive.brokers.kafka.positions import Positions
from redrive.brokers.kafka.topics import Topics
from redrive.core.errors import BrokerUnavailable, QueueNotFound


class Admin:
    """An administrator's client that takes everything down."""

    def __init__(self) -> None:
        self.begun: list[Any] = []

    def create_topics(self, new: list[Any], **_: object) -> dict[str, "Future[None]"]:
        self.begun += new
        done: Future[None] = Future()
        done.set_result(None)
        return {each.topic: done for each in new}


def begun(topic: str, *, copies: int, dlq: bool = False) -> Any:
    topics, admin = Topics(Address.of(f"kafka://nowhere:1?replication={copies}"), dlq=DlqTopic()), Admin()
    topics._client = admin  # type: ignore[assignment]  # noqa: SLF001
    topics._begin(topic, largest=0, dlq=dlq)  # noqa: SLF001
    return admin.begun[0]


@pytest.mark.parametrize("topic", ["orders", "orders.dlq", "orders.outcomes", "orders..shop.lane", "redrive..ledger"])
@pytest.mark.parametrize(("copies", "wanted"), [(1, None), (2, None), (3, "2"), (5, "2")])
def test_what_is_acknowledged_is_in_two_copies_where_there_are_three(
    topic: str, copies: int, wanted: str | None
) -> None:
    new = begun(topic, copies=copies, dlq=topic.endswith(".dlq"))

    assert new.replication_factor == copies
    assert new.config.get("min.insync.replicas") == wanted


def fault(code: int) -> KafkaException:
    return KafkaException(KafkaError(code, "what a broker says, or does not say"))


class Consumer:
    """A client that is told at first what only some brokers say, or nothing by one that is gone."""

    def __init__(self, code: int) -> None:
        self.answers: list[Any] = [fault(code)] * 3

    def offsets_for_times(self, asked: list[TopicPartition], **_: object) -> list[TopicPartition]:
        if self.answers:
            raise self.answers.pop()
        return asked

    def list_topics(self, *_: object, **__: object) -> None:
        pass


UNHEARD_OF = (codes.UNKNOWN_PARTITION, codes.UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)
GONE = (codes.TIMED_OUT, codes.TRANSPORT, codes.DESTROY_BROKER)


@pytest.mark.parametrize("code", [*UNHEARD_OF, *GONE, KafkaError.OFFSET_NOT_AVAILABLE])
def test_where_a_topic_begins_is_asked_until_every_broker_has_heard_of_it_and_of_the_leader_after_one_that_is_gone(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions, consumer = Positions(Address.of("kafka://nowhere:1")), Consumer(code)
    monkeypatch.setattr(positions, "_consumer", lambda *_, **__: consumer)

    assert positions.starts([("orders", 0)]) == {("orders", 0): -2}
    assert consumer.answers == []


class Told:
    """An administrator's client that hears at first that there is no such topic, or nothing."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.looks = 0

    def describe_topics(self, *_: object, **__: object) -> dict[str, "Future[Any]"]:
        return {"orders": self._answer()}

    def describe_configs(self, wanted: list[Any], **_: object) -> dict[Any, "Future[Any]"]:
        return {wanted[0]: self._answer()}

    def list_topics(self, *_: object, **__: object) -> None:
        self.looks += 1

    def poll(self, _: float) -> None:
        pass

    def _answer(self) -> "Future[Any]":
        future, answer = Future[Any](), self.answers.pop(0)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future


def topics_told(*answers: Any) -> Topics:
    topics = Topics(Address.of("kafka://nowhere:1"), dlq=DlqTopic())
    topics._client = Told(*answers)  # type: ignore[assignment]  # noqa: SLF001
    return topics


def test_what_a_topic_is_that_was_just_begun_is_asked_until_every_broker_has_heard_of_it() -> None:
    unknown = fault(KafkaError.UNKNOWN_TOPIC_OR_PART)

    assert topics_told(unknown, SimpleNamespace(topic_id="an id")).identity("orders") == "an id"
    assert topics_told(unknown, {"retention.ms": SimpleNamespace(value="1")}).settings(["orders"]) == {
        "orders": {"retention.ms": "1"}
    }


def test_what_a_topic_is_is_asked_of_another_broker_when_the_one_that_was_asked_is_gone() -> None:
    topics = topics_told(fault(codes.TIMED_OUT), SimpleNamespace(topic_id="an id"))

    assert topics.identity("orders") == "an id"
    assert topics.admin.looks == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", [codes.DESTROY_BROKER, KafkaError.OFFSET_NOT_AVAILABLE])
def test_what_is_said_while_leaders_change_is_that_there_is_no_service_for_now(code: int) -> None:
    assert isinstance(translate(fault(code)), BrokerUnavailable)


def test_a_topic_that_no_broker_ever_hears_of_is_not_there() -> None:
    def ask() -> None:
        raise fault(codes.UNKNOWN_PARTITION)

    with pytest.raises(QueueNotFound):
        insist(ask, patience=0.0)
