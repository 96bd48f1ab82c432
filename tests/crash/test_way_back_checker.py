"""The checker of a way back sees each thing that can go wrong."""

from dataclasses import replace
from typing import Any

import pytest

from redrive.core.life import LetterState, Life
from redrive.core.redrive import ItemStatus, Progress
from redrive.core.stored import StoredLetter
from redrive.testing.conformance.store.bench import an_outcome, letter
from tests.crash.journal import Entry, Word
from tests.crash.way_back_checker import ZEROS, Return, check_return

NAMES = ("a", "b")


def a_run(name: str, *, message: str, generation: int = 1) -> Entry:
    return Entry(0.0, 1, Word.START, name, generation=generation, note=message)


def a_stored(name: str, **changes: Any) -> StoredLetter:
    dead = letter(name, payload=name.encode())
    return replace(
        StoredLetter(letter=dead, life=Life(LetterState.RESOLVED, 1), outcomes=(an_outcome(name, 1),)), **changes
    )


KILLED = Entry(0.0, 2, Word.FAULT, note="SIGKILL of the redriver")
BEFORE = tuple(a_run(name, message=name, generation=0) for name in NAMES)
RUNS = tuple(a_run(name, message=f"{name}-again") for name in NAMES)
STORED = tuple(a_stored(name) for name in NAMES)
GOOD = Return(
    published=NAMES,
    journal=(*BEFORE, *RUNS, KILLED),
    letters=STORED,
    progress=Progress(({ItemStatus.SUCCEEDED: 2},)),
    claims={"a": 1, "b": 1},
    by_state={"resolved": 2},
    left=(),
    unended=(),
    strikes=1,
)

BAD: dict[str, dict[str, Any]] = {
    "published twice": {"journal": (*GOOD.journal, a_run("a", message="a-once-more"))},
    "run twice": {"journal": (*GOOD.journal, RUNS[0])},
    "phantom": {"published": ("a", "b"), "journal": (*GOOD.journal, a_run("c", message="c-again"))},
    "unresolved": {"published": ("a", "b", "c")},
    "not once": {"claims": {"a": 1, "b": 2}},
    "unconfirmed": {"progress": Progress(({ItemStatus.SUCCEEDED: 1, ItemStatus.UNCONFIRMED: 1},))},
    "miscounted": {"by_state": {"resolved": 1, "open": 1}},
    "left": {"left": ["1 in orders for shop"]},
    "unended": {"unended": ["the redrive is paused"]},
    "unreached": {"strikes": 2},
}


def test_a_way_back_on_which_everything_went_well_is_all_zero() -> None:
    verdict = check_return(GOOD)

    assert verdict.red == []
    assert verdict.zeros.keys() == ZEROS.keys() == BAD.keys()
    assert verdict.shown["resolved"] == verdict.shown["redriven messages"] == 2


@pytest.mark.parametrize("name", BAD)
def test_what_went_wrong_turns_its_own_count_red(name: str) -> None:
    assert check_return(replace(GOOD, **BAD[name])).red == [name]


def test_a_second_run_after_the_worker_was_killed_is_shown_and_is_no_mistake() -> None:
    again = RUNS[0]._replace(pid=KILLED.pid)

    verdict = check_return(replace(GOOD, journal=(*GOOD.journal, again)))

    assert verdict.red == []
    assert verdict.shown["re-executions"] == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"outcomes": ()},
        {"outcomes": (an_outcome("a", 1), an_outcome("a", 2))},
        {"outcomes": (an_outcome("a", 1, succeeded=False), an_outcome("a", 1))},
        {"life": Life(LetterState.RESOLVED, 2)},
    ],
    ids=["no report", "two generations", "a failure too", "another generation"],
)
def test_a_letter_that_was_not_resolved_exactly_once_is_seen(changes: dict[str, Any]) -> None:
    assert check_return(replace(GOOD, letters=(a_stored("a", **changes), STORED[1]))).red == ["not once"]
