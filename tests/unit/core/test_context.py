"""What a letter tells about its message."""

import json
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.context import ContextRule, OwnFields
from redrive.core.errors import ConfigError
from redrive.core.message import Headers, Message
from redrive.core.privacy import MASK, PrivacyFilter
from tests.unit.core.letters import headers, texts


def a_message(body: bytes = b"{}", given_headers: Headers = ()) -> Message:
    return Message(id="1", queue="orders", body=body, headers=given_headers)


def test_names_are_headers_or_dotted_payload_fields() -> None:
    body = b'{"customer": {"id": 7, "tags": ["a", "b"]}, "dotted.name": 1, "nothing": null}'
    rule = ContextRule.of(["trace", "customer.id", "customer.tags.1", "dotted.name", "nothing", "absent", "customer.x"])

    assert rule.read(a_message(body, (("trace", b"abc"), ("trace", b"second")))) == {
        "trace": "abc",
        "customer.id": 7,
        "customer.tags.1": "b",
        "dotted.name": 1,
        "nothing": None,
    }


@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * 100_000, b"9" * 5000, b"3", b"[]"])
def test_a_payload_that_is_no_object_has_no_fields(body: bytes) -> None:
    assert ContextRule.of(["a", "a.b", "0", "99999999999999999999"]).read(a_message(body)) == {}


def test_a_function_gives_the_context() -> None:
    rule = ContextRule.of(lambda message: {"size": len(message.body), "password": "x"})

    assert rule.read(a_message()) == {"size": 2, "password": MASK}


class Unprintable(Exception):
    def __str__(self) -> NoReturn:
        raise RuntimeError


def boom(error: Exception) -> Any:
    def function(_: Message) -> NoReturn:
        raise error

    return function


def test_a_function_that_raises_says_so_in_the_context() -> None:
    assert ContextRule.of(boom(KeyError("id"))).read(a_message()) == {"context_error": "KeyError: 'id'"}
    assert "context_error" in ContextRule.of(boom(Unprintable())).read(a_message())
    assert "context_error" in ContextRule.of(lambda _: 3).read(a_message())  # type: ignore[arg-type, return-value]


def test_a_context_is_bounded() -> None:
    rule = ContextRule.of(lambda _: {**{f"n{i}": "x" * 1500 for i in range(50)}, "small": 1})
    found = rule.read(a_message())

    assert len(json.dumps(found)) <= 8 * 1024
    assert found["small"] == 1
    assert found["context_omitted"] == "45 of 51, too large"


async def a_coroutine(_: Message) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("spec", ["user_id", 3, ["ok", ""], [1], a_coroutine])
def test_what_is_neither_names_nor_a_function_is_a_mistake(spec: Any) -> None:
    with pytest.raises(ConfigError, match="context: expected"):
        ContextRule.of(spec)


def own(context: dict[str, Any], given_headers: Headers = (), rule: ContextRule | None = None) -> OwnFields:
    return (rule or ContextRule()).own_fields(context, given_headers)


def test_a_letters_own_fields_are_found_in_the_context_first() -> None:
    found = own({"user_id": 7, "tenant_id": " "}, (("user_id", b"8"), ("tenant_id", b"t1")))

    assert found == OwnFields(user_id="7", tenant_id="t1")


@pytest.mark.parametrize("name", ["user_id", "User-Id", "X-User-ID", "x-user-id"])
def test_a_header_counts_in_any_spelling(name: str) -> None:
    assert own({}, ((name, b"u1"), (name, b"u2"))).user_id == "u1"


@pytest.mark.parametrize(
    ("value", "trace"),
    [
        (b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"),
        (b"nonsense", None),
        (b"\xff", None),
    ],
)
def test_the_trace_is_found_in_traceparent(value: bytes, trace: str | None) -> None:
    assert own({}, (("traceparent", value),)).trace_id == trace


def test_a_field_that_the_filter_hides_stays_hidden() -> None:
    rule = ContextRule.of(ContextRule(names=("user_id",), privacy=PrivacyFilter(names=["user_id"])))

    assert own({"user_id": MASK}, (("user_id", b"7"),), rule) == OwnFields()


@pytest.mark.parametrize("value", [True, None, [], {}, 1.5, ""])
def test_what_is_no_word_fills_no_field(value: object) -> None:
    assert own({"user_id": value}).user_id is None


@given(st.binary(), headers, st.lists(texts.filter(bool), max_size=3))
def test_reading_never_raises(body: bytes, given_headers: Headers, names: list[str]) -> None:
    rule = ContextRule.of([*names, *(name for name, _ in given_headers if name)])

    assert len(json.dumps(rule.read(a_message(body, given_headers)))) <= 8 * 1024
    rule.own_fields({}, given_headers)
