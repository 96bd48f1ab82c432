"""How topics are begun."""

from concurrent.futures import Future
from typing import Any

import pytest

from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.dlq_topic import DlqTopic
from redrive.brokers.kafka.topics import Topics


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
