from dataclasses import replace
from itertools import permutations

import pytest

from redrive.core.life import LetterState, Life
from redrive.stores.hearing import Answer, Heard, News, Standing, answers, by_letter, hear
from redrive.stores.ledger import Ledger, Spot
from redrive.testing.conformance.store.bench import AT, an_outcome, letter

SPOT = Spot("orders", LetterState.OPEN, "ValueError", "rejected", "f1")


def test_a_batch_is_sorted_by_letter() -> None:
    news = by_letter([letter("a"), letter("b"), letter("a", generation=1)], [an_outcome("b", 1)])

    assert {name: (len(about.deaths), len(about.outcomes)) for name, about in news.items()} == {
        "a": (2, 0),
        "b": (1, 1),
    }


def test_outcomes_alone_do_not_make_a_letter() -> None:
    assert hear(News([], [an_outcome("a", 1)]), None) is None


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_the_order_within_a_batch_does_not_matter(order: tuple[int, ...]) -> None:
    deaths = [letter("a", generation=generation) for generation in range(3)]
    heard = hear(News([deaths[number] for number in order], []), None)

    assert heard is not None
    assert (heard.life.generation, heard.shown) == (2, deaths[2])
    assert [attempt.generation for attempt in heard.past] == [0, 1]


def test_what_is_known_changes_nothing() -> None:
    standing = Standing(Life(LetterState.OPEN, 1, 4), 1, SPOT)

    assert hear(News([letter("a", generation=1)], []), standing) == Heard(standing.life)


@pytest.mark.parametrize(("generation", "comes"), [(0, False), (2, False), (3, True)])
def test_only_a_later_death_brings_a_purged_letter_back(generation: int, comes: bool) -> None:  # noqa: FBT001
    heard = hear(News([letter("a", generation=generation)], []), None, buried_in=2)

    assert (heard is not None) is comes


def test_first_deaths_and_reported_failures_answer_for_no_redrive() -> None:
    told = [an_outcome("a", 1), an_outcome("a", 2, succeeded=False)]

    assert answers(by_letter([letter("a"), letter("a", generation=3)], told)) == [
        Answer("a", 3, "f1"),
        Answer("a", 1, None, "v2"),
    ]


def test_a_move_to_the_same_place_counts_nothing() -> None:
    ledger = Ledger()
    ledger.move(SPOT, SPOT)

    assert (ledger.states, ledger.incidents) == ({}, {})


def test_the_latest_death_speaks_for_its_incident() -> None:
    ledger = Ledger()
    ledger.arrive([letter("b"), letter("a"), replace(letter("c"), failed_at=AT.replace(year=2029))])

    delta = ledger.incidents["f1"]
    assert (delta.latest, delta.first_at) == (letter("b"), AT.replace(year=2029))


def test_deaths_that_were_not_heard_of_before_are_told_once_each() -> None:
    standing = Standing(Life(LetterState.OPEN, 2, 4), 2, SPOT, {0})
    deaths = [letter("a", generation=generation) for generation in (3, 0, 1, 2, 1, 3)]
    heard = hear(News(deaths, []), standing)

    assert heard is not None
    assert [death.generation for death in heard.first] == [1, 3]
    assert heard.died_before(standing) == {1, 2}
    assert [attempt.generation for attempt in heard.past] == [1]


def test_a_late_death_without_attempts_is_a_change() -> None:
    standing = Standing(Life(LetterState.OPEN, 1, 4), 1, SPOT)
    heard = hear(News([letter("a", attempts=())], []), standing)

    assert heard is not None
    assert (heard.life, heard.shown, heard.past) == (standing.life, None, ())
    assert heard.changes(standing)
    assert heard.died_before(standing) == {0}
