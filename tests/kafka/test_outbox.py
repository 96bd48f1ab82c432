"""A plain producer that the client lets down."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Message as Told

from redrive.brokers.kafka import codes, outbox
from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.outbox import Outbox
from redrive.brokers.kafka.promises import Promises
from redrive.brokers.kafka.record import Record
from redrive.core.errors import BrokerError, BrokerUnavailable

BROKEN = KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "a gap", fatal=True)
TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "no room")


class Client:
    """A producer that tells of each record what it is given."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.refuses: KafkaError | None = None
        self.raises: KafkaError | None = None
        self._to_tell: list[Callable[[], None]] = []

    def produce(self, topic: str, value: bytes, *_: object, on_delivery: Any, **__: object) -> None:
        if self.refuses is not None:
            raise KafkaException(self.refuses)
        message = Told(topic=topic, partition=0, offset=0, value=value)
        self._to_tell.append(lambda: on_delivery(self.error, message))

    def poll(self, _: float) -> None:
        if self._to_tell and self.raises is not None:
            error, self.raises = self.raises, None
            raise SystemError("returned a result with an exception set") from KafkaException(error)
        while self._to_tell:
            self._to_tell.pop(0)()

    def flush(self, _: float) -> None: ...

    def __len__(self) -> int:
        return len(self._to_tell)


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """Every producer that was made."""
    made: list[Client] = []

    def make(_: object) -> Client:
        made.append(Client())
        return made[-1]

    monkeypatch.setattr(outbox, "connected", make)
    return made


@pytest.fixture
def box(clients: list[Client]) -> Iterator[Outbox]:
    box = Outbox(Address.of("kafka://nowhere:1"), promises=Promises(lambda _: {}))
    box.open()
    yield box
    box.close()


async def test_a_client_that_has_broken_off_is_left_behind_and_the_next_to_send_has_a_new_one(
    box: Outbox, clients: list[Client]
) -> None:
    clients[0].error = BROKEN
    with pytest.raises(BrokerUnavailable, match="broken off"):
        await box.send(Record("orders", b"1"))
    sent = await box.send(Record("orders", b"2"))

    assert sent.id == "orders-0-0"
    assert len(clients) == 2


async def test_so_is_one_that_has_broken_off_before_and_takes_nothing_any_more(
    box: Outbox, clients: list[Client]
) -> None:
    clients[0].refuses = KafkaError(codes.FATAL, "see above")
    with pytest.raises(BrokerUnavailable, match="broken off"):
        await box.send(Record("orders", b"1"))
    await box.send(Record("orders", b"2"))

    assert len(clients) == 2


async def test_a_client_that_breaks_off_before_it_tells_of_a_record_is_still_heard(
    box: Outbox, clients: list[Client]
) -> None:
    clients[0].raises = clients[0].error = BROKEN
    with pytest.raises(BrokerUnavailable, match="broken off"):
        await asyncio.wait_for(box.send(Record("orders", b"1")), 30)
    await box.send(Record("orders", b"2"))

    assert len(clients) == 2


async def test_a_client_that_is_told_of_one_bad_record_is_kept(box: Outbox, clients: list[Client]) -> None:
    clients[0].error = TOO_LARGE
    with pytest.raises(BrokerError, match="larger than its topic takes"):
        await box.send(Record("orders", b"1"))
    clients[0].error, clients[0].refuses = None, TOO_LARGE
    with pytest.raises(BrokerError, match="no room"):
        await box.send(Record("orders", b"2"))
    clients[0].refuses = None
    await box.send(Record("orders", b"3"))

    assert len(clients) == 1
