import json
from datetime import UTC, datetime, timedelta

import pytest

from redrive.cli.output import Column, Exit, age, complain, exit_for, preview, show, span, tell
from redrive.core.errors import (
    BrokerError,
    BrokerUnavailable,
    ConfigError,
    LetterNotFound,
    MissingExtra,
    QueueNotFound,
    StoreUnavailable,
)

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
COLUMNS = (Column("queue", "queue"), Column("waiting", "waiting", right=True), Column("at", "at"))
FACTS = [{"queue": "orders", "waiting": 7, "at": AT}, {"queue": "mail", "waiting": 1200, "at": None}]


def test_in_a_pipe_facts_are_plain_columns_without_colour(capsys: pytest.CaptureFixture[str]) -> None:
    show(FACTS, COLUMNS, as_json=False, empty="nothing")

    assert capsys.readouterr().out.splitlines() == [
        "queue   waiting  at",
        "orders        7  2026-01-02 03:04:05Z",
        "mail       1200  -",
    ]


def test_json_is_one_line_per_fact(capsys: pytest.CaptureFixture[str]) -> None:
    show(FACTS, COLUMNS, as_json=True, empty="nothing")

    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"queue": "orders", "waiting": 7, "at": "2026-01-02T03:04:05+00:00"},
        {"queue": "mail", "waiting": 1200, "at": None},
    ]


def test_no_facts_are_said_in_words_but_not_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    show([], COLUMNS, as_json=False, empty="no queues yet")
    words = capsys.readouterr().out
    show([], COLUMNS, as_json=True, empty="no queues yet")

    assert (words, capsys.readouterr().out) == ("no queues yet\n", "")


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
def test_nothing_from_outside_reaches_the_terminal_unescaped(
    capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    evil = "\x1b[2J\x9b31m\u202e"
    show([{"queue": evil, "waiting": 1, "at": None}], COLUMNS, as_json=as_json, empty="")
    tell({"text": evil}, evil, as_json=as_json)
    complain([evil])

    captured = capsys.readouterr()
    assert not set(evil[:1] + "\x9b\u202e") & set(captured.out + captured.err)
    assert "[2J" in captured.out


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError("x"), Exit.USAGE),
        (MissingExtra("Redis", extra="redis"), Exit.USAGE),
        (BrokerUnavailable("x"), Exit.UNAVAILABLE),
        (StoreUnavailable("x"), Exit.UNAVAILABLE),
        (QueueNotFound("x"), Exit.NOT_FOUND),
        (LetterNotFound("x"), Exit.NOT_FOUND),
        (BrokerError("x"), Exit.NO),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_has_a_stable_exit_status_and_one_line(
    capsys: pytest.CaptureFixture[str], error: Exception, status: Exit
) -> None:
    assert exit_for(error) is status
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_error_of_somebody_else_has_none() -> None:
    assert exit_for(ValueError("a bug")) is None


def test_every_mistake_in_the_settings_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    exit_for(ConfigError(["a: expected b", "redis://shop:s3cret@cache: expected c"]))

    assert capsys.readouterr().err.splitlines() == [
        "redrive: a: expected b",
        "redrive: redis://shop:***@cache: expected c",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0s"), (0.9, "0s"), (59, "59s"), (60, "1m"), (61, "1m 1s"), (7200, "2h"), (90000, "1d 1h")],
)
def test_a_span_is_said_in_at_most_two_units(seconds: float, text: str) -> None:
    assert span(timedelta(seconds=seconds)) == text


def test_an_age_of_nothing_is_a_dash() -> None:
    assert age(None, now=AT) == "-"
    assert age(AT, now=AT + timedelta(seconds=90)) == "1m 30s"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (None, "-"),
        (b'{"id": 1}', '{"id": 1}'),
        (b"\xff\x1b[", "\\xff\\x1b["),
        (b"0123456789abcdef", "012345678…"),
        ("äöüßäöüßäöüß".encode(), "äöüßäöüßä…"),
    ],
)
def test_a_payload_is_shown_by_its_beginning(body: bytes | None, shown: str) -> None:
    assert preview(body, width=10) == shown
