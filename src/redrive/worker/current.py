"""Which delivery is being handled here: asked when a line is logged, so that handling one costs nothing more."""

import asyncio
from contextvars import ContextVar
from typing import Protocol

from redrive.core.delivery import Delivery
from redrive.worker.run import Run


class Hand(Protocol):
    """Whoever runs a handler: what is in its hand keeps its lease."""

    deliveries: tuple[Delivery, ...]
    run: Run | None


_HANDS: dict[asyncio.Task[None], Hand] = {}

IN_THREAD: ContextVar[Delivery] = ContextVar("redrive_in_thread")
"""Of a handler that runs in a thread."""


def works_in(task: asyncio.Task[None], hand: Hand) -> None:
    """Remember, until the task ends, whose handlers run in it."""
    _HANDS[task] = hand
    task.add_done_callback(_HANDS.pop)


def current_delivery() -> Delivery | None:
    """What the handler that asks was given; None outside of one, in a batch, and in tasks that a handler begins."""
    if (delivery := IN_THREAD.get(None)) is not None:
        return delivery
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None
    hand = None if task is None else _HANDS.get(task)
    if hand is None:
        return None
    if hand.run is not None:
        return hand.run.current
    return hand.deliveries[0] if len(hand.deliveries) == 1 else None
