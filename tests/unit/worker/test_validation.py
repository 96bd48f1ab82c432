"""`validate=`: what is refused before the handler runs, and what becomes of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import redrive
from redrive.clock import SystemClock
from redrive.core.delivery import Delivery
from redrive.core.event import BatchSettled, MessageDropped
from redrive.core.letter import payload_hash
from redrive.core.redrive import SendBack
from redrive.observe.event_log import EventLog
from redrive.testing import run
from redrive.testing.rehearsal import Rehearsal
from redrive.worker.handler_call import handler_of
from redrive.worker.validation import Validation

SCHEMA = {
    "type": "object",
    "required": ["currency"],
    "properties": {"total": {"type": "integer"}, "kind": {"enum": ["sale", "refund"]}},
    "propertyNames": {"maxLength": 12},
    "additionalProperties": False,
    "patternProperties": {"^x_": {"type": "string"}, "currency": {}},
}


class Order(msgspec.Struct):
    id: int


async def died(body: object, **options: Any) -> tuple[Rehearsal, list[object]]:
    app = redrive.App("memory://", name="shop")
    called: list[object] = []

    @app.consumer("orders", **options)
    async def charge(order: dict[str, Any]) -> None:
        called.append(order)

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", body)
        await rehearsal.drain()
    return rehearsal, called


async def test_what_the_schema_allows_reaches_the_handler() -> None:
    rehearsal, called = await died({"currency": "EUR", "total": 5}, validate=SCHEMA)

    assert called == [{"currency": "EUR", "total": 5}]
    assert not rehearsal.letters


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"total": 1}, '"currency" is a required property, says #/required'),
        ({"currency": "EUR", "total": "canary"}, 'the value is not of type "integer", says #/properties/total/type'),
        (
            {"currency": "EUR", "kind": "canary"},
            'the value is not one of "sale" or "refund", says #/properties/kind/enum',
        ),
        ({"currency": "EUR", "canary": 1}, "refused by #/additionalProperties"),
        ({"currency": "EUR", "canaryCanaryCanary": 1}, "refused by #/"),
    ],
)
async def test_what_it_does_not_allow_is_a_letter_at_once_in_words_of_the_schema(body: object, said: str) -> None:
    rehearsal, called = await died(body, validate=SCHEMA)

    letter = rehearsal.letters.one()
    assert (letter.reason, letter.error_code, letter.severity) == ("invalid", "schema_validation_failed", "error")
    assert letter.error_message.startswith(said)
    assert "canary" not in letter.error_message.lower()
    assert letter.context["validation_stage"] == "schema"
    assert letter.payload == json.dumps(body, separators=(",", ":")).encode()
    assert (called, rehearsal.delays) == ([], [])


@pytest.mark.parametrize("body", [b"\xff", b"{", b"", b'"\\ud800"', b"[" * 100_000])
async def test_what_is_no_json_is_refused_before_the_schema(body: bytes) -> None:
    rehearsal, _ = await died(body, validate=True)

    letter = rehearsal.letters.one()
    assert (letter.reason, letter.error_code) == ("invalid", "invalid_json")
    assert letter.context["validation_stage"] == "decode"


async def test_what_is_nested_too_deeply_is_refused() -> None:
    rehearsal, called = await died(b"[" * 900 + b"]" * 900, validate=SCHEMA)

    assert (rehearsal.letters.one().reason, called) == ("invalid", [])


async def test_a_schema_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text(json.dumps(SCHEMA))
    rehearsal, _ = await died({}, validate=file)

    assert rehearsal.letters.one().error_code == "schema_validation_failed"


def an_order(order: Order) -> None:
    """Annotated as a handler is."""


def even(order: Order) -> bool:
    return order.id % 2 == 0


def positive(order: Order) -> None:
    if order.id < 0:
        raise ValueError(f"{order.id} is below zero")


def signed(message: redrive.Message, delivery: Delivery) -> None:
    if message.header("signature") is None:
        raise redrive.InvalidPayload("no signature", code="unsigned", stage="signature", severity="critical")


@pytest.mark.parametrize(
    ("function", "body", "code", "stage", "said"),
    [
        (an_order, {"id": "x"}, "invalid_payload", "validate", "Expected `int`, got `str` - at `$.id`"),
        (even, {"id": 1}, "invalid_payload", "validate", "refused by even"),
        (positive, {"id": -3}, "invalid_payload", "validate", "refused by positive: -3 is below zero"),
        (signed, {"id": 1}, "unsigned", "signature", "no signature"),
    ],
)
async def test_a_function_asks_by_annotation_and_refuses(
    function: Callable[..., object], body: object, code: str, stage: str, said: str
) -> None:
    rehearsal, called = await died(body, validate=function)

    letter = rehearsal.letters.one()
    assert (letter.reason, letter.error_code, letter.error_message) == ("invalid", code, said)
    assert letter.context["validation_stage"] == stage
    assert (called, rehearsal.delays) == ([], [])


async def test_whatever_else_a_function_raises_is_a_failure_and_is_tried_again() -> None:
    def flawed(order: Order) -> None:
        raise ConnectionError("the registry is away")

    rehearsal, _ = await died({"id": 1}, validate=flawed, retry=[1, 2], breaker=None)

    assert rehearsal.letters.one().reason == "attempts_exhausted"
    assert rehearsal.delays == [1, 2]


@pytest.mark.parametrize("options", [{"validate": signed}, {}])
async def test_codes_of_which_nobody_wants_letters_are_acked_and_told_with_the_hash(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    check = options.get("validate", an_order)
    validation = redrive.Validation(check, codes=["other"])
    body = b'{"id": "canary"}'
    rehearsal, called = await died(body, validate=validation)
    depth = await rehearsal.broker.depth("orders", group="shop")

    (dropped,) = [event for event in rehearsal.events if isinstance(event, MessageDropped)]
    EventLog()(dropped)
    (line,) = caplog.messages
    assert (dropped.payload_sha256, dropped.reason) == (payload_hash(body), "invalid")
    assert dropped.error_code == ("unsigned" if options else "invalid_payload")
    assert payload_hash(body) in line
    assert dropped.error_code in line
    assert "canary" not in line
    assert (called, [*rehearsal.letters]) == ([], [])
    assert (depth.waiting, depth.in_flight, depth.scheduled, depth.dead) == (0, 0, 0, 0)


async def test_codes_hold_for_models_without_a_check_too() -> None:
    app = redrive.App("memory://", name="shop")

    @app.consumer("orders", validate=redrive.Validation(codes=["invalid_json"]))
    async def charge(order: Order) -> None: ...

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {"id": "x"})
        await rehearsal.publish("orders", b"{")
        await rehearsal.drain()

    assert rehearsal.letters.one().error_code == "invalid_json"


async def test_a_redriven_message_becomes_its_letter_again_whatever_its_code() -> None:
    app = redrive.App("memory://", name="shop")

    @app.consumer("orders", validate=redrive.Validation(SCHEMA, codes=[]))
    async def charge(order: dict[str, Any]) -> None: ...

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", {})
        await rehearsal.drain()
        await rehearsal.broker.send_back([SendBack("l-1", 1, "orders", b"{}", group="shop")])
        await rehearsal.drain()

    letter = rehearsal.letters.one()
    assert (letter.letter_id, letter.generation) == ("l-1", 1)


async def test_of_a_batch_only_what_is_invalid_is_refused() -> None:
    app = redrive.App("memory://", name="shop")
    called: list[int] = []

    @app.batch_consumer("orders", validate=even)
    async def charge(orders: list[Order]) -> None:
        called.extend(order.id for order in orders)

    async with run(app) as rehearsal:
        for number in range(4):
            await rehearsal.publish("orders", {"id": number})
        await rehearsal.drain()

    assert sorted(called) == [0, 2]
    assert [letter.payload for letter in rehearsal.letters] == [b'{"id":1}', b'{"id":3}']
    assert sum(event.dead for event in rehearsal.events if isinstance(event, BatchSettled)) == 2


async def test_a_handler_called_by_hand_is_guarded_too() -> None:
    app = redrive.App("memory://", name="shop")

    @app.consumer("orders", validate=even)
    async def charge(order: Order) -> int:
        return order.id

    call = handler_of(app.consumers[0])
    now = SystemClock().now()

    assert await call(Delivery(redrive.Message("1", "orders", b'{"id": 2}'), "shop", now)) == 2
    with pytest.raises(redrive.InvalidPayload):
        await call(Delivery(redrive.Message("1", "orders", b'{"id": 3}'), "shop", now))


async def later(order: Order) -> None: ...


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ({"validate": {"type": "objectx"}}, "validate: expected a JSON Schema"),
        ({"validate": {"$ref": "http://127.0.0.1:9/x"}}, "nothing is fetched"),
        ({"validate": Path("nowhere.json")}, "nowhere.json cannot be read"),
        ({"validate": later}, "coroutine"),
        ({"validate": 7}, "validate: expected a JSON Schema, a function"),
        ({"payload": "none"}, "payload: expected one of full, digest, encrypted"),
        ({"payload": "digest", "stack": True}, "stack: expected False"),
    ],
)
def test_a_mistake_is_told_where_the_consumer_is_made(options: dict[str, Any], mistake: str) -> None:
    app = redrive.App("memory://", name="shop")
    with pytest.raises(redrive.ConfigError, match=mistake):
        app.consumer("orders", **options)


def test_codes_are_a_list() -> None:
    with pytest.raises(redrive.ConfigError, match=r"validate\.codes"):
        Validation(codes="unsigned")
