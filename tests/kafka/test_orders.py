"""What is ordered of the thread that reads is done in its order, and two calls of different kinds share a commit."""

from concurrent.futures import Future
from typing import Any

import pytest

from redrive.brokers.kafka.notes import Note
from redrive.brokers.kafka.orders import Orders
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import Window
from tests.kafka.test_steps import FINISH, HAND, Paper, asked, noting

CONSUMER: Any = object()
AGAIN: Note = (Window.finish, {Share(("orders", 1), Window(0)): [0]})


@pytest.fixture
def paper() -> Any:
    return Paper()


def test_a_settlement_and_a_fetch_share_a_commit_and_two_settlements_do_not(paper: Any) -> None:
    orders, answers = Orders(paper), list[Future[Any]]()
    for kind, note in (("settle", FINISH), ("settle", AGAIN), ("take", HAND)):
        order, answer = asked(kind, noting(note, []))
        answers.append(answer)
        assert orders.leave(order)

    assert orders.obey(CONSUMER)
    assert [answer.result(0) for answer in answers] == ["done"] * 3
    assert paper.written == [(FINISH,), (AGAIN, HAND)]
    assert not orders.obey(CONSUMER)


def test_what_is_no_call_is_done_in_its_turn(paper: Any) -> None:
    orders, seen = Orders(paper), list[object]()
    first, _ = asked("settle", noting(FINISH, []))
    last, _ = asked("take", noting(HAND, []))
    for order in (first, lambda consumer: seen.append((consumer, len(paper.written))), last):
        orders.leave(order)
    orders.obey(CONSUMER)

    assert seen == [(CONSUMER, 1)]
    assert paper.written == [(FINISH,), (HAND,)]


def test_what_was_left_before_the_end_is_obeyed_and_nothing_is_taken_after_it(paper: Any) -> None:
    orders = Orders(paper)
    first, answer = asked("settle", noting(FINISH, []))
    orders.leave(first)
    orders.close()

    assert not orders.leave(asked("take", noting(HAND, []))[0])
    assert orders.obey(CONSUMER)
    assert answer.result(0) == "done"
