import pytest

from redrive.core.message import Message, as_headers, without_reserved


def a_message(**changes: str) -> Message:
    return Message(id="2-0", queue="orders", body=b"", headers=(("a", b"1"), ("a", b"2"), ("b", b"\xff")))._replace(
        **changes  # type: ignore[arg-type]
    )


def test_the_origin_is_the_first_copy() -> None:
    assert a_message().origin_id == "2-0"
    assert a_message(origin="1-0").origin_id == "1-0"


def test_the_idempotency_key_is_the_same_for_every_copy() -> None:
    first = a_message(id="1-0")
    redriven = a_message(id="9-0", origin="1-0")

    assert first.idempotency_key == redriven.idempotency_key
    assert first.idempotency_key != a_message(id="1-0", queue="payments").idempotency_key


@pytest.mark.parametrize(("name", "value"), [("a", "1"), ("b", "\\xff"), ("c", None)])
def test_a_header_is_read_as_text_the_first_of_its_name(name: str, value: str | None) -> None:
    assert a_message().header(name) == value


def test_headers_are_taken_as_people_write_them() -> None:
    assert as_headers(None) == ()
    assert as_headers({"a": "ü", "b": b"\xff"}) == (("a", b"\xc3\xbc"), ("b", b"\xff"))
    assert as_headers((("a", b"1"), ("a", b"2"))) == (("a", b"1"), ("a", b"2"))


def test_reserved_headers_can_be_stripped() -> None:
    assert without_reserved((("rd-letter", b"x"), ("a", b"1"), ("rd", b"2"))) == (("a", b"1"), ("rd", b"2"))
