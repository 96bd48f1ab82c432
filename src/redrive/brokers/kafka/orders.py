"""What others want of the thread that reads: done between two rebalances, in the order in which it came."""

import contextlib
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TypeAlias

from confluent_kafka import Consumer

from redrive.brokers.kafka.notes import Notes
from redrive.brokers.kafka.steps import Asked, do_together

Order: TypeAlias = Asked | Callable[[Consumer], None]


class Orders:
    """Left by any thread, obeyed by one."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._queue: SimpleQueue[Order] = SimpleQueue()
        self._door = Lock()
        self._is_open = True

    def leave(self, order: Order) -> bool:
        """Have something done; False if nobody will do it any more."""
        with self._door:
            if self._is_open:
                self._queue.put(order)
            return self._is_open

    def close(self) -> None:
        """Take no more; what was left is still to be obeyed."""
        with self._door:
            self._is_open = False

    def obey(self, consumer: Consumer, *, wait: float = 0.0) -> bool:
        """Do what was ordered; with `wait`, so many seconds for it to come. Whether there was anything."""
        has_obeyed = False
        with contextlib.suppress(Empty):
            order = self._queue.get(block=wait > 0, timeout=wait)
            while True:
                has_obeyed = True
                order = self._do(order, consumer) or self._queue.get_nowait()
        return has_obeyed

    def _do(self, order: Order, consumer: Consumer) -> Order | None:
        """Do one, and the next one with it if they can share a commit, as a settlement and a fetch can.

        Returns the next one if it is still to be done.
        """
        if not isinstance(order, Asked):
            order(consumer)
            return None
        after: Order | None = None
        with contextlib.suppress(Empty):
            after = self._queue.get_nowait()
        shared = [after] if isinstance(after, Asked) and after.kind != order.kind else []
        do_together([order, *shared], self._notes)
        return None if shared else after
