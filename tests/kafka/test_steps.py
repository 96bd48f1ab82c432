"""Calls that share a commit: each is answered, whatever becomes of the others."""

from concurrent.futures import Future
from typing import Any, NamedTuple

import pytest

from redrive.brokers.kafka.notes import Note
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.steps import Asked, Steps, do_alone, do_together
from redrive.brokers.kafka.window import Window
from redrive.core.errors import BrokerUnavailable

SHARE = Share(("orders", 0), Window(0))
HAND: Note = (Window.hand, {SHARE: [1]})
FINISH: Note = (Window.finish, {SHARE: [0]})


class Answer(NamedTuple):
    future: "Future[Any]"

    def result(self, value: object) -> None:
        self.future.set_result(value)

    def error(self, error: Exception) -> None:
        self.future.set_exception(error)


class Paper:
    """Notes that take commits, or do not."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.written: list[tuple[Note, ...]] = []
        self._fault = fault

    def commit(self, *wanted: Note) -> None:
        if self._fault is not None:
            raise self._fault
        self.written.append(wanted)


def noting(note: Note, heard: list[str]) -> Steps[str]:
    try:
        yield note
    except BrokerUnavailable:
        heard.append("not written")
        raise
    return "done"


def nothing() -> Steps[str]:
    yield from ()
    return "nothing to do"


def stumbling() -> Steps[str]:
    yield from ()
    raise ArithmeticError("a mistake")


def asked(kind: str, steps: Steps[str]) -> tuple[Asked, "Future[Any]"]:
    answer: Future[Any] = Future()
    return Asked(kind, steps, Answer(answer)), answer


def test_two_calls_are_written_down_in_one_commit_in_their_order() -> None:
    paper: Any = Paper()
    (one, first), (two, second) = asked("settle", noting(FINISH, [])), asked("take", noting(HAND, []))
    do_together([one, two], paper)

    assert (first.result(0), second.result(0)) == ("done", "done")
    assert paper.written == [(FINISH, HAND)]


def test_if_the_commit_fails_every_call_hears_of_it_and_undoes_what_it_began() -> None:
    paper: Any = Paper(BrokerUnavailable("nobody answers"))
    heard: list[str] = []
    (one, first), (two, second) = asked("settle", noting(FINISH, heard)), asked("take", noting(HAND, heard))
    do_together([one, two], paper)

    assert heard == ["not written", "not written"]
    for answer in (first, second):
        with pytest.raises(BrokerUnavailable):
            answer.result(0)


def test_a_call_with_nothing_to_write_or_with_a_mistake_does_not_hold_up_the_other() -> None:
    paper: Any = Paper()
    (one, first), (two, second) = asked("settle", stumbling()), asked("take", noting(HAND, []))
    do_together([one, two], paper)

    with pytest.raises(ArithmeticError):
        first.result(0)
    assert second.result(0) == "done"
    assert paper.written == [(HAND,)]
    assert do_alone(nothing(), paper) == "nothing to do"
    assert paper.written == [(HAND,)]


def test_a_call_by_itself_raises_what_went_wrong() -> None:
    paper: Any = Paper(BrokerUnavailable("nobody answers"))

    with pytest.raises(BrokerUnavailable):
        do_alone(noting(HAND, []), paper)
    assert do_alone(noting(HAND, []), Paper()) == "done"  # type: ignore[arg-type]
