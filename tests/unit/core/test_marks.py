from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.marks import Marks, read_marks, write_marks
from redrive.core.message import Headers, without_reserved
from redrive.core.redrive import SendBack
from tests.unit.core.letters import counts, some_text, texts

OWN: Headers = (("colour", b"red"), ("rd", b"1"))


def sent(**changes: Any) -> SendBack:
    values: dict[str, Any] = {"letter_id": "letter-1", "generation": 2, "queue": "orders", "body": b"1"}
    return SendBack(**values | {"group": "shop", "origin": "m0"} | changes)


def test_a_copy_for_a_group_says_whose_letter_it_is() -> None:
    assert write_marks(sent(attempts_allowed=1)) == (
        ("rd-letter", b"letter-1"),
        ("rd-generation", b"2"),
        ("rd-queue", b"orders"),
        ("rd-group", b"shop"),
        ("rd-origin", b"m0"),
        ("rd-attempts", b"1"),
    )


def test_a_copy_that_is_not_to_be_marked_has_no_marks() -> None:
    assert write_marks(sent(marked=False)) == ()


numbers = st.integers(0, 999_999_999)


@given(texts, st.none() | some_text, some_text, st.none() | numbers, counts.filter(lambda count: count < 10**9))
def test_marks_are_read_as_they_were_written_and_hidden_among_others(
    origin: str, group: str | None, letter_id: str, attempts: int | None, generation: int
) -> None:
    item = sent(letter_id=letter_id, generation=generation, group=group, origin=origin, attempts_allowed=attempts)
    headers = (*OWN, *write_marks(item))

    assert read_marks(headers, queue="orders", group=group or "") == Marks(letter_id, generation, attempts, origin)
    assert without_reserved(headers) == OWN


@pytest.mark.parametrize(("queue", "group"), [("invoices", "shop"), ("orders", "audit"), ("orders", "")])
def test_marks_for_another_queue_or_group_say_nothing(queue: str, group: str) -> None:
    assert read_marks(write_marks(sent()), queue=queue, group=group) is None


def test_no_group_of_ours_speaks_for_a_copy_that_went_to_the_queue_itself() -> None:
    marks = write_marks(sent(group=None))

    assert read_marks(marks, queue="orders", group="shop") is None
    assert read_marks(marks, queue="orders") == Marks("letter-1", 2, None, "m0")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rd-letter", b""),
        ("rd-letter", b"\xff"),
        ("rd-generation", b"two"),
        ("rd-generation", b"-1"),
        ("rd-generation", "²".encode()),
        ("rd-generation", b"9" * 5000),
        ("rd-queue", b"invoices"),
    ],
)
def test_damaged_marks_say_nothing(name: str, value: bytes) -> None:
    assert read_marks(((name, value), *write_marks(sent())), queue="orders", group="shop") is None


def test_headers_without_marks_say_nothing() -> None:
    assert read_marks(OWN, queue="orders") is None
    assert read_marks((), queue="orders") is None
