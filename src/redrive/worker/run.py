"""A run: handlers of a row of new messages, one behind the other, without a coroutine or a context for each."""

import time
from collections.abc import Callable, Coroutine
from contextvars import Context
from operator import length_hint
from typing import Any, TypeAlias

from redrive.core.delivery import Delivery
from redrive.core.row import Made, Row

ByBody: TypeAlias = Callable[[bytes], Coroutine[Any, Any, Any]]
Failed: TypeAlias = tuple[BaseException, float] | None
"""What the last handler of a run raised, and after how many seconds."""


class Run:
    """Handlers that run one after the other, in one coroutine and, while none of them changes it, one context."""

    __slots__ = ("_begun", "_bodies", "_current", "_left", "_row")

    def __init__(self, row: Row) -> None:
        self._row = row
        self._bodies = row.bodies
        self._left = iter(self._bodies)
        self._begun = 0
        self._current: Delivery | None = None

    @property
    def begun(self) -> int:
        """How many have begun."""
        return self._begun or len(self._bodies) - length_hint(self._left)

    @property
    def current(self) -> Delivery:
        """The one that runs."""
        return self._current or self._row.delivery(self.begun - 1)

    @property
    def deliveries(self) -> list[Delivery]:
        """All that this run may go through."""
        return self._row.deliveries()

    async def through(self, begin: ByBody, context: Context, until: float) -> Failed:
        """Run the handler on each, until one fails, the time is over, or one has changed the context."""
        clock, clean = time.monotonic, context.copy()
        given = [*clean.items()]
        began = clock()
        for body in self._left:
            try:
                await begin(body)
            except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
                return error, clock() - began
            began = clock()
            if began > until:
                return None
            try:
                if context != clean:  # next to nothing, while nobody has set anything
                    return None
            except Exception:  # noqa: BLE001 - somebody has, and values of the user's own do not let themselves compare
                return None
            for name, value in given:
                if context[name] is not value:  # equal, but another one
                    return None
        return None

    def end_here(self) -> None:
        """Begin no further one: the one that runs has to wait. From now on it keeps nothing of the others."""
        self._current, self._begun = self.current, self.begun
        self._row = Row(Made([self._current]), 0, 1)
        self._bodies.clear()
