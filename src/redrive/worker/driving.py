"""Driving a handler's coroutine by hand, in a context of its own: no task for each message."""

import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from typing import Any


@types.coroutine
def drive(work: Coroutine[Any, Any, Any], context: Context, waiting_for: object) -> Generator[Any, Any, Any]:
    """Go on with a started coroutine inside its own context, as part of whichever task awaits this."""
    while True:
        step: Callable[[Any], Any]
        try:
            argument = yield waiting_for
        except BaseException as error:  # noqa: BLE001 - cancellation and the like belong to the handler
            step, argument = work.throw, error
        else:
            step = work.send
        try:
            waiting_for = context.run(step, argument)
        except StopIteration as end:
            return end.value


async def in_fresh_context(work: Coroutine[Any, Any, Any]) -> Any:
    """Await a coroutine inside a context of its own, so that what it sets does not leak into the lane."""
    context = copy_context()
    try:
        waiting_for = context.run(work.send, None)
    except StopIteration as end:
        return end.value
    return await drive(work, context, waiting_for)
