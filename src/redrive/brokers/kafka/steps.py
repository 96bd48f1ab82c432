"""Calls that need a plain commit in their midst, so that two of them can share one."""

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from redrive.brokers.kafka.notes import Note, Notes

T = TypeVar("T")

Steps: TypeAlias = Generator[Note, None, T]
"""A call that yields what is to be written down, once, and goes on when that is done; or hears that it was not."""


class Answering(Protocol):
    """Whoever waits for an answer."""

    def result(self, value: object) -> None: ...
    def error(self, error: Exception) -> None: ...


class Asked(NamedTuple):
    """A call, of a kind, and who waits for its answer. Never raises but where the answer is heard."""

    kind: str
    steps: Steps[Any]
    answering: Answering

    def begin(self) -> Note | None:
        """What is to be written down; None if that is nothing, and the answer is given."""
        try:
            return next(self.steps)
        except StopIteration as end:
            self.answering.result(end.value)
        except Exception as error:  # noqa: BLE001 - for whoever asked
            self.answering.error(error)
        return None

    def end(self, fault: Exception | None) -> None:
        """Go on, or hear why it was not written down."""
        try:
            next(self.steps) if fault is None else self.steps.throw(fault)
        except StopIteration as end:
            self.answering.result(end.value)
        except Exception as error:  # noqa: BLE001 - for whoever asked
            self.answering.error(error)


def do_together(asked: Sequence[Asked], notes: Notes) -> None:
    """Make these calls with one commit; each must be of another kind: none sees what another has done."""
    begun = [(each, note) for each in asked if (note := each.begin()) is not None]
    fault: Exception | None = None
    try:
        if begun:
            notes.commit(*(note for _, note in begun))
    except Exception as error:  # noqa: BLE001 - for everybody who asked
        fault = error
    for each, _ in begun:
        each.end(fault)


def do_alone(steps: Steps[T], notes: Notes) -> T:
    """Make one call, and return its answer."""
    answer: Future[T] = Future()
    do_together([Asked("alone", steps, _Here(answer))], notes)
    return answer.result()


class _Here(NamedTuple):
    """An answer that is waited for where it was asked for."""

    answer: Future[Any]

    def result(self, value: object) -> None:
        self.answer.set_result(value)

    def error(self, error: Exception) -> None:
        self.answer.set_exception(error)
