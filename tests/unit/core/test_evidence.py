from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.evidence import CAUSES_READ, causes_of, codes_of, is_mute, status_of, told_delay

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ZERO = timedelta(0)


class Foreign(Exception):
    """An exception of somebody else's, with the attributes given."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("foreign")
        for name, value in attributes.items():
            setattr(self, name, value)


class Hostile(Exception):
    """An exception whose every unknown attribute raises."""

    def __getattr__(self, name: str) -> Never:
        raise RuntimeError(name)


class Mapped(Mapping[str, Any]):
    """A mapping that is there but cannot be read."""

    def __getitem__(self, key: str) -> Never:
        raise RuntimeError(key)

    def __iter__(self) -> Never:
        raise RuntimeError

    def __len__(self) -> int:
        return 1


class Declared(Exception):
    """An exception whose class has the attribute."""

    status = 503


class Slotted(Exception):
    """An exception that keeps the attribute outside its `__dict__`."""

    __slots__ = ("status",)

    def __init__(self, status: int) -> None:
        super().__init__("slotted")
        self.status = status


class Answering(Exception):
    """An exception that makes the attribute up when it is asked for."""

    def __getattr__(self, name: str) -> int:
        if name == "status":
            return 503
        raise AttributeError(name)


class Guarding(Exception):
    """An exception with a way of its own to look attributes up."""

    def __getattribute__(self, name: str) -> Any:
        return 503 if name == "status" else super().__getattribute__(name)


class Inheriting(Declared): ...


def raised_from(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def told_by(**headers: Any) -> timedelta | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return told_delay(Foreign(response=SimpleNamespace(headers=named)), now=AT)


def test_causes_come_outermost_first() -> None:
    root, middle, outer = KeyError("root"), ValueError("middle"), TypeError("outer")
    middle.__context__ = root
    outer.__cause__ = middle

    assert list(causes_of(outer)) == [outer, middle, root]


def test_a_suppressed_context_is_not_a_cause() -> None:
    error = ValueError()
    error.__context__ = KeyError()
    error.__suppress_context__ = True

    assert list(causes_of(error)) == [error]


def test_a_cycle_of_causes_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__context__ = two, one

    assert list(causes_of(one)) == [one, two]


def test_a_chain_without_end_is_read_so_far_and_no_further() -> None:
    error: BaseException = ValueError()
    for _ in range(1000):
        error = raised_from(ValueError(), error)

    assert len(list(causes_of(error))) == CAUSES_READ


def test_the_members_of_a_group_are_causes_in_their_order() -> None:
    one, two = ValueError("one"), KeyError("two")
    group = ExceptionGroup("both", [one, two])

    assert list(causes_of(group)) == [group, one, two]


@pytest.mark.parametrize(
    "error",
    [
        Foreign(status=503),
        Foreign(status_code=503),
        Foreign(http_status=503),
        Foreign(code=503),
        Foreign(code=HTTPStatus.SERVICE_UNAVAILABLE),
        Foreign(code="server_error", status=503),
        Foreign(response=SimpleNamespace(status_code=503)),
        Foreign(response=SimpleNamespace(status=503)),
        Foreign(response={"ResponseMetadata": {"HTTPStatusCode": 503}}),
    ],
)
def test_a_status_is_found_wherever_clients_keep_it(error: Foreign) -> None:
    assert status_of(error) == 503


@pytest.mark.parametrize("value", [200, 302, 600, -1, True, "503", None, 503.0, [503]])
def test_what_is_no_failing_status_is_none(value: object) -> None:
    assert status_of(Foreign(status=value)) is None


@pytest.mark.parametrize(
    "error",
    [
        Foreign(code="insufficient_quota"),
        Foreign(type="insufficient_quota"),
        Foreign(body={"code": "insufficient_quota"}),
        Foreign(body={"error": {"type": "insufficient_quota"}}),
        Foreign(response={"Error": {"Code": "insufficient_quota"}}),
    ],
)
def test_a_code_is_found_wherever_clients_keep_it(error: Foreign) -> None:
    assert list(codes_of(error)) == ["insufficient_quota"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("2", 2),
        ("1.5", 1.5),
        (" 3 ", 3),
        (".5", 0.5),
        (b"4", 4),
        ("0", 0),
        ("Sun, 01 Mar 2026 12:00:03 GMT", 3),
        ("Sunday, 01-Mar-26 12:00:03 GMT", 3),
        ("Sun Mar  1 12:00:03 2026", 3),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
    ],
)
def test_retry_after_is_understood_in_every_form(told: str | bytes, expected: float) -> None:
    assert told_by(Retry_After=told) == timedelta(seconds=expected)


@pytest.mark.parametrize(
    "junk",
    ["", "soon", "-1", "nan", "inf", "1e3", "1_000", "٣", "1,5", "9" * 5000, "x" * 10**6, "Sun, 31 Feb 2026"],
    ids=lambda junk: junk[:20],
)
def test_junk_tells_nothing(junk: str) -> None:
    assert told_by(retry_after=junk) is None


def test_milliseconds_go_before_seconds_unless_they_are_junk() -> None:
    assert told_by(retry_after_ms="1500", retry_after="2") == timedelta(seconds=1.5)
    assert told_by(x_ms_retry_after_ms="250") == timedelta(seconds=0.25)
    assert told_by(retry_after_ms="soon", retry_after="2") == timedelta(seconds=2)


def test_a_date_needs_to_know_what_time_it_is() -> None:
    error = Foreign(headers={"retry-after": "Sun, 01 Mar 2026 12:00:03 GMT"})

    assert told_delay(error) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, timedelta(seconds=3)),
        (0.5, timedelta(seconds=0.5)),
        ("7", timedelta(seconds=7)),
        (timedelta(minutes=1), timedelta(minutes=1)),
        (AT + timedelta(seconds=9), timedelta(seconds=9)),
        ((AT + timedelta(seconds=9)).replace(tzinfo=None), timedelta(seconds=9)),
        ((AT + timedelta(seconds=9)).astimezone(timezone(timedelta(hours=5))), timedelta(seconds=9)),
        pytest.param(10**400, timedelta.max, id="huge"),
        (-1, None),
        (timedelta(seconds=-1), None),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
        (None, None),
        (object(), None),
    ],
)
def test_an_exception_may_say_retry_after_itself(value: object, expected: timedelta | None) -> None:
    assert told_delay(Foreign(retry_after=value), now=AT) == expected


@pytest.mark.parametrize(
    "error",
    [
        Foreign(headers={"RETRY-AFTER": "2"}),
        Foreign(headers=[(b"Retry-After", b"2")]),
        Foreign(headers={"etag": "x"}, response=SimpleNamespace(headers={"retry-after": "2"})),
        Foreign(response={"ResponseMetadata": {"HTTPHeaders": {"retry-after": "2"}}}),
        Foreign(retry_after="junk", headers={"retry-after": "2"}),
    ],
)
def test_headers_are_found_wherever_clients_keep_them(error: Foreign) -> None:
    assert told_delay(error, now=AT) == timedelta(seconds=2)


@pytest.mark.parametrize(
    "error",
    [
        Hostile(),
        Foreign(headers=5, response=Mapped(), body=Mapped()),
        Foreign(headers=["x"]),
        Foreign(headers=Mapped()),
    ],
    ids=["attributes raise", "mappings raise", "headers are no pairs", "headers raise"],
)
def test_an_exception_that_cannot_be_read_has_nothing_to_say(error: Exception) -> None:
    assert status_of(error) is None
    assert list(codes_of(error)) == []
    assert told_delay(error, now=AT) is None


@given(st.text() | st.binary() | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ [\d:]+ [+-]?\w*"))
def test_no_header_makes_it_raise_or_go_back_in_time(value: str | bytes) -> None:
    told = told_by(retry_after=value, retry_after_ms=value)

    assert told is None or told >= ZERO


@pytest.mark.parametrize(
    "error",
    [Foreign(status=503), Declared(), Inheriting(), Slotted(503), Answering(), Guarding()],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_with_a_name_that_is_read_is_not_mute(error: BaseException) -> None:
    assert not is_mute(error)
    assert status_of(error) == 503


@pytest.mark.parametrize("error", [ValueError("x"), TimeoutError(), Foreign(), Foreign(order=7)])
def test_an_exception_without_such_a_name_is_mute(error: BaseException) -> None:
    assert is_mute(error)


def test_an_exception_is_looked_at_even_if_another_of_its_class_was_mute() -> None:
    assert is_mute(Foreign())
    assert status_of(Foreign(status=503)) == 503


def test_a_class_that_cannot_be_looked_at_is_not_mute() -> None:
    class Unhashable(type):
        __hash__ = None  # type: ignore[assignment]

    class Odd(Exception, metaclass=Unhashable):
        status = 503

    assert not is_mute(Odd())
    assert status_of(Odd()) == 503
