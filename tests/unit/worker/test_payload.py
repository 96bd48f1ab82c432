from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pydantic
import pytest

from redrive.core.delivery import Delivery
from redrive.core.errors import ConfigError
from redrive.core.message import Message
from redrive.core.reason import Reason
from redrive.worker.payload import InvalidPayload, encode, read_signature

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Order:
    id: int
    customer: str = ""


class StructOrder(msgspec.Struct):
    id: int


class ModelOrder(pydantic.BaseModel):
    id: int


class Database:
    pass


def delivery(body: bytes) -> Delivery:
    return Delivery(Message("1", "orders", body), "shop", datetime(2030, 1, 1, tzinfo=UTC))


def test_each_annotation_gets_what_it_asks_for() -> None:
    def as_bytes(body: bytes) -> None: ...
    def as_text(body: str) -> None: ...
    def as_dict(body: dict[str, Any]) -> None: ...
    def as_dataclass(body: Order) -> None: ...
    def as_struct(body: StructOrder) -> None: ...
    def as_model(body: ModelOrder) -> None: ...
    def unannotated(body): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202

    body = b'{"id": 7}'
    wanted: list[tuple[Callable[..., Any], Any]] = [
        (as_bytes, body),
        (as_text, body.decode()),
        (as_dict, {"id": 7}),
        (as_dataclass, Order(7)),
        (as_struct, StructOrder(7)),
        (as_model, ModelOrder(id=7)),
        (unannotated, {"id": 7}),
    ]
    for handler, value in wanted:
        assert read_signature(handler).arguments(delivery(body)) == [value]


def test_message_delivery_and_resources_are_filled_by_annotation_in_any_order() -> None:
    def handler(db: Database, message: Message, order: Order, handed: Delivery) -> None: ...

    db = Database()
    given = delivery(b'{"id": 7}')
    signature = read_signature(handler, resources=[db])

    assert signature.arguments(given) == [db, given.message, Order(7), given]
    assert signature.wants_delivery


def test_a_batch_handler_asks_for_lists() -> None:
    def handler(orders: list[Order], messages: list[Message]) -> None: ...

    given = delivery(b'{"id": 7}')

    assert read_signature(handler, batch=True).arguments(given) == [Order(7), given.message]


def test_every_parameter_that_cannot_be_filled_is_named() -> None:
    def handler(order: Order, db: Database, other: Order) -> None: ...

    with pytest.raises(ConfigError) as caught:
        read_signature(handler)

    assert len(caught.value.mistakes) == 2
    assert "'db'" in caught.value.mistakes[0]
    assert "'other'" in caught.value.mistakes[1]


@pytest.mark.parametrize(
    ("body", "code", "stage"),
    [
        (b"\xff\xfe", "invalid_json", "decode"),
        (b"", "invalid_json", "decode"),
        (b"{", "invalid_json", "decode"),
        (b'{"id": ' + b"9" * 5000 + b"}", "invalid_payload", "validate"),
        (b'{"id": "seven"}', "invalid_payload", "validate"),
        (b"{}", "invalid_payload", "validate"),
    ],
    ids=["not text", "empty", "torn", "5,000 digits", "wrong type", "missing field"],
)
@pytest.mark.parametrize("kind", [Order, StructOrder, ModelOrder])
def test_a_body_that_does_not_fit_is_invalid_and_says_why(kind: type, body: bytes, code: str, stage: str) -> None:
    def handler(order): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202

    handler.__annotations__["order"] = kind
    with pytest.raises(InvalidPayload) as caught:
        read_signature(handler).arguments(delivery(body))

    assert caught.value.reason is Reason.INVALID
    assert caught.value.severity == "error"
    if kind is not ModelOrder:  # pydantic does not tell bad JSON from a bad value
        assert (caught.value.code, caught.value.stage) == (code, stage)


def test_json_too_deep_to_read_is_invalid_and_the_worker_lives() -> None:
    def handler(body: list[Any]) -> None: ...

    with pytest.raises(InvalidPayload, match="not JSON"):
        read_signature(handler).arguments(delivery(b"[" * 100_000))


def test_text_must_be_utf_8() -> None:
    def handler(body: str) -> None: ...

    with pytest.raises(InvalidPayload, match="not UTF-8"):
        read_signature(handler).arguments(delivery(b"\xff"))


def test_what_is_published_comes_back_as_it_was() -> None:
    assert encode(b"\x00\xff") == b"\x00\xff"
    assert encode("grüß") == "grüß".encode()
    assert encode({"id": 1}) == b'{"id":1}'
    assert encode(Order(1, "x")) == b'{"id":1,"customer":"x"}'
    assert encode(ModelOrder(id=1)) == b'{"id":1}'
    with pytest.raises(TypeError):
        encode(object())
