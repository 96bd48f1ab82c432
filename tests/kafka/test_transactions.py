"""A transactional producer that the client lets down."""

from threading import Event
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from redrive.brokers.kafka import codes, transactions
from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.promises import Promises
from redrive.brokers.kafka.record import Record
from redrive.brokers.kafka.transactions import Offsets, Transactions
from redrive.core.errors import BrokerUnavailable

OFFSETS = Offsets({("orders", 0): (1, "")}, member=None)


class Client:
    """A producer; one that hangs never comes back from committing offsets."""

    never = Event()

    def __init__(self, *, hangs: bool) -> None:
        self.hangs = hangs
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self.calls.append(name)

    def send_offsets_to_transaction(self, *_: object) -> None:
        self.calls.append("send_offsets_to_transaction")
        if self.hangs:
            self.never.wait()


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """The first producer that is made hangs; those after it do not."""
    made: list[Client] = []

    def make(_: object) -> Client:
        made.append(Client(hangs=not made))
        return made[-1]

    monkeypatch.setattr(transactions, "connected", make)
    monkeypatch.setattr(transactions, "OFFSETS_PATIENCE", 0.0)
    monkeypatch.setattr(transactions, "_GRACE", 0.01)
    return made


def test_a_client_that_never_ends_a_call_is_left_behind_and_its_transaction_is_ended_by_the_next(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    pen = Transactions(Address.of("kafka://nowhere:1"), "me", promises=Promises(lambda _: {}))
    with pytest.raises(BrokerUnavailable, match="does not commit offsets"):
        pen.carry_out([], offsets=[OFFSETS])
    monkeypatch.setattr(transactions, "_GRACE", 30.0)
    pen.carry_out([], offsets=[OFFSETS])
    Client.never.set()

    assert clients[0].calls[-2:] == ["purge", "flush"]
    assert clients[1].calls == [
        "init_transactions",
        "begin_transaction",
        "send_offsets_to_transaction",
        "commit_transaction",
    ]


def test_a_client_that_is_fenced_while_it_tells_of_its_records_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fatal error is on its way when it calls back: for Python that is a call with an error set."""
    fenced = KafkaError(codes.FENCED, "by a newer instance", fatal=True)

    class Fenced(Client):
        def flush(self, _: float) -> None:
            raise SystemError("returned a result with an exception set") from KafkaException(fenced)

        def abort_transaction(self, _: float) -> None:
            raise KafkaException(fenced)

    made: list[Client] = []

    def make(_: object) -> Client:
        made.append(Client(hangs=False) if made else Fenced(hangs=False))
        return made[-1]

    monkeypatch.setattr(transactions, "connected", make)
    pen = Transactions(Address.of("kafka://nowhere:1"), "me", promises=Promises(lambda _: {}))
    with pytest.raises(BrokerUnavailable, match="newer instance"):
        pen.carry_out([Record("orders", b"1", ())])
    pen.carry_out([])

    assert made[1].calls[-1] == "commit_transaction"
