"""The queue of one model: fair between agents, the urgent first, and nobody starved."""

from collections import OrderedDict, deque
from typing import Final

from redrive.gateway.ticket import Ticket

LEAST_URGENT_TURN: Final = 8
"""Every so many turns the least urgent waiting request is served: priority is a preference, no exclusion."""


class FairQueue:
    """Requests that wait to be sent. Within one priority the agents take turns, whatever each of them has waiting."""

    def __init__(self) -> None:
        self._levels: dict[int, _Level] = {}
        self._turn = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, ticket: Ticket) -> None:
        """Put a request behind what its agent has waiting with the same priority."""
        level = self._levels.get(ticket.request.priority)
        if level is None:
            level = self._levels[ticket.request.priority] = _Level()
        level.put(ticket)
        self._size += 1

    def head(self) -> Ticket:
        """The request whose turn it is; it stays. Raises `LookupError` if there is none."""
        return self._level().head()

    def take(self) -> Ticket:
        """Take the request that `head` shows. Raises `LookupError` if there is none."""
        level = self._level()
        ticket = level.take()
        self._forget(ticket, level)
        self._turn = (self._turn + 1) % LEAST_URGENT_TURN
        return ticket

    def remove(self, ticket: Ticket) -> bool:
        """Take a request out of the middle; False if it is not here."""
        level = self._levels.get(ticket.request.priority)
        if level is None or not level.remove(ticket):
            return False
        self._forget(ticket, level)
        return True

    def _level(self) -> "_Level":
        if len(self._levels) == 1:
            return next(iter(self._levels.values()))
        choose = min if self._turn == LEAST_URGENT_TURN - 1 else max
        return self._levels[choose(self._levels)]

    def _forget(self, ticket: Ticket, level: "_Level") -> None:
        self._size -= 1
        if not level.agents:
            del self._levels[ticket.request.priority]


class _Level:
    """The requests of one priority, by agent. Every agent in `agents` has a request and a place in `turns`."""

    def __init__(self) -> None:
        self.agents: dict[str, OrderedDict[Ticket, None]] = {}
        self.turns: deque[str] = deque()

    def put(self, ticket: Ticket) -> None:
        waiting = self.agents.get(ticket.request.agent_id)
        if waiting is None:
            waiting = self.agents[ticket.request.agent_id] = OrderedDict()
            self.turns.append(ticket.request.agent_id)
        waiting[ticket] = None

    def head(self) -> Ticket:
        return next(iter(self.agents[self.turns[0]]))

    def take(self) -> Ticket:
        agent_id = self.turns.popleft()
        waiting = self.agents[agent_id]
        ticket, _ = waiting.popitem(last=False)
        if waiting:
            self.turns.append(agent_id)
        else:
            del self.agents[agent_id]
        return ticket

    def remove(self, ticket: Ticket) -> bool:
        agent_id = ticket.request.agent_id
        waiting = self.agents.get(agent_id)
        if waiting is None or ticket not in waiting:
            return False
        del waiting[ticket]
        if not waiting:
            del self.agents[agent_id]
            self.turns.remove(agent_id)
        return True
