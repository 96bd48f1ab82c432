from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.gateway.queue import LEAST_URGENT_TURN, FairQueue
from redrive.gateway.ticket import Ticket
from tests.unit.gateway.stage import a_request

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def a_ticket(name: str, agent: str = "a", priority: int = 0) -> Ticket:
    return Ticket(a_request(name, agent_id=agent, priority=priority), b"{}", 1, NOW, None, NOW)


def filled(*tickets: Ticket) -> FairQueue:
    queue = FairQueue()
    for ticket in tickets:
        queue.put(ticket)
    return queue


def drained(queue: FairQueue) -> list[str]:
    found = []
    while queue:
        head = queue.head()
        assert queue.take() is head
        found.append(head.request_id)
    return found


def test_one_agents_requests_are_served_in_their_order() -> None:
    assert drained(filled(*(a_ticket(str(n)) for n in range(5)))) == ["0", "1", "2", "3", "4"]


def test_agents_take_turns_whatever_each_of_them_has_waiting() -> None:
    queue = filled(*(a_ticket(f"a{n}", "a") for n in range(100)), *(a_ticket(f"b{n}", "b") for n in range(10)))

    served = Counter(queue.take().request.agent_id for _ in range(20))

    assert served == {"a": 10, "b": 10}


def test_the_urgent_are_served_first_and_nobody_is_starved() -> None:
    queue = filled(*(a_ticket(f"low{n}", priority=0) for n in range(4)))
    for n in range(32):
        queue.put(a_ticket(f"high{n}", priority=5))

    served = [queue.take().request.priority for _ in range(32)]

    assert served[: LEAST_URGENT_TURN - 1] == [5] * (LEAST_URGENT_TURN - 1)
    assert served.count(0) == 32 // LEAST_URGENT_TURN


def test_a_request_can_leave_from_anywhere() -> None:
    tickets = [a_ticket(str(n), "ab"[n % 2]) for n in range(6)]
    queue = filled(*tickets)

    assert queue.remove(tickets[2])
    assert not queue.remove(tickets[2])
    assert not queue.remove(a_ticket("stranger", priority=9))
    assert drained(queue) == ["0", "1", "4", "3", "5"]


def test_an_empty_queue_has_no_head() -> None:
    with pytest.raises((LookupError, ValueError)):
        FairQueue().head()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.booleans()), max_size=40))
def test_every_request_comes_out_once(moves: list[tuple[str, int, bool]]) -> None:
    queue, inside, out = FairQueue(), [], []
    for number, (agent, priority, leaves) in enumerate(moves):
        inside.append(a_ticket(str(number), agent, priority))
        queue.put(inside[-1])
        if leaves:
            gone = inside[number // 2]
            if queue.remove(gone):
                out.append(gone.request_id)
    left = len(queue)
    rest = drained(queue)

    assert len(rest) == left
    assert sorted([*rest, *out]) == sorted(ticket.request_id for ticket in inside)
