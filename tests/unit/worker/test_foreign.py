import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pydantic
import pytest
from celery.exceptions import Reject

from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError
from redrive.core.message import Message
from redrive.worker.foreign import all_arguments, delivery_of, is_signal

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MARKS = {"rd-letter": "letter-1", "rd-generation": "2", "rd-queue": "orders", "rd-group": "", "tenant": "a"}


def body_of(*args: Any, **kwargs: Any) -> bytes:
    rule = all_arguments(lambda *_, **__: None)
    return delivery_of(rule(args, kwargs), queue="orders", now=NOW).message.body


def marked(marks: Mapping[str, object]) -> Delivery:
    headers: Any = marks
    return delivery_of(Message("m9", "", b"7", headers), queue="orders", now=NOW)


@dataclass
class Order:
    number: int


class Invoice(pydantic.BaseModel):
    number: int


@pytest.mark.parametrize(
    ("argument", "body"),
    [
        (b"\xff\x00", b"\xff\x00"),
        (bytearray(b"\xff"), b"\xff"),
        ("é", "é".encode()),
        ({"id": 7}, b'{"id":7}'),
        (Order(7), b'{"number":7}'),
        (Invoice(number=7), b'{"number":7}'),
        (7, b"7"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_single_argument_is_the_payload(argument: object, body: bytes) -> None:
    assert body_of(argument) == body
    assert body_of(order=argument) == body


def test_several_arguments_are_written_together_so_that_none_is_lost() -> None:
    written = body_of("7", 12.5, Order(8), invoice=Invoice(number=9))

    assert json.loads(written) == {
        "args": ["7", 12.5, {"number": 8}],
        "kwargs": {"invoice": {"number": 9}},
    }


def test_a_call_without_arguments_is_written_as_such() -> None:
    assert json.loads(body_of()) == {"args": [], "kwargs": {}}


def test_the_self_of_a_method_or_of_a_bound_task_is_not_counted() -> None:
    def charge(self: object, order: bytes) -> None: ...

    assert all_arguments(charge)((object(), b"7"), {}) == b"7"


def test_arguments_without_data_stand_as_the_name_of_their_type() -> None:
    assert json.loads(body_of({"id": 7}, threading.Event())) == {
        "args": [{"id": 7}, "<threading.Event>"],
        "kwargs": {},
    }


def test_what_strict_json_refuses_is_written_all_the_same() -> None:
    strange = {"name": "\ud800", "size": 2**70, "invoice": Invoice(number=7), "when": NOW}

    assert json.loads(body_of(strange)) == {
        "name": "\ud800",
        "size": 2**70,
        "invoice": {"number": 7},
        "when": "2030-01-01T00:00:00Z",
    }


class Rude:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


@pytest.mark.parametrize("opaque", [object(), threading.Event(), Rude()], ids=["object", "event", "rude"])
def test_a_single_argument_without_data_asks_for_a_rule(opaque: object) -> None:
    with pytest.raises(ConfigError, match="message: expected a rule that finds the payload"):
        body_of(opaque)


def test_data_that_contains_itself_asks_for_a_rule() -> None:
    endless: list[object] = []
    endless.append(endless)

    with pytest.raises(ConfigError, match="message: expected a rule that finds the payload"):
        body_of(endless)


def test_a_whole_message_keeps_what_it_says_but_belongs_to_the_source() -> None:
    message = Message("m1", "elsewhere", b"7", (("raw", b"\xff"),), key=b"k", expires_at=NOW)

    assert delivery_of(message, queue="orders", now=NOW).message == message._replace(queue="orders")


def test_headers_and_keys_of_any_kind_become_bytes() -> None:
    headers: Any = {"text": "a", "raw": b"\xff", "more": bytearray(b"\xfe"), "count": 3, "odd": "\ud800"}
    key: Any = "customer-1"

    message = delivery_of(Message("m1", "", b"7", headers, key), queue="orders", now=NOW).message

    assert message.headers == (
        ("text", b"a"),
        ("raw", b"\xff"),
        ("more", b"\xfe"),
        ("count", b"3"),
        ("odd", b"\xed\xa0\x80"),
    )
    assert message.key == b"customer-1"


def test_a_client_that_says_none_for_no_headers_is_understood() -> None:
    none: Any = None

    assert delivery_of(Message("m1", "", b"7", none), queue="orders", now=NOW).message.headers == ()


def test_a_message_without_an_id_is_given_one_of_its_own() -> None:
    ids = {delivery_of(b"7", queue="orders", now=NOW).message.id for _ in range(100)}

    assert len(ids) == 100


def test_the_marks_of_a_redrive_are_honoured_and_hidden() -> None:
    delivery = marked({**MARKS, "rd-origin": "m0", "rd-attempts": "1"})

    assert (delivery.letter_id, delivery.generation, delivery.attempts_allowed) == ("letter-1", 2, 1)
    assert (delivery.message.id, delivery.message.origin) == ("m9", "m0")
    assert delivery.message.headers == (("tenant", b"a"),)


@pytest.mark.parametrize(
    "change",
    [
        {"rd-queue": "invoices"},
        {"rd-group": "shop"},
        {"rd-generation": "two"},
        {"rd-generation": "²"},
        {"rd-generation": "9" * 5000},
        {"rd-letter": ""},
    ],
    ids=lambda change: f"{change}"[:40],
)
def test_marks_that_are_not_for_this_queue_are_hidden_and_not_honoured(change: dict[str, str]) -> None:
    delivery = marked({**MARKS, **change})

    assert (delivery.letter_id, delivery.generation) == (None, 0)
    assert delivery.message.headers == (("tenant", b"a"),)


def test_what_speaks_to_the_framework_is_a_signal_and_a_failure_is_not() -> None:
    class OwnReject(Reject):  # type: ignore[misc] # Celery ships no types
        pass

    assert is_signal(OwnReject())
    assert not is_signal(ValueError())
