"""Attempts inside their spans. Without tracing there is nothing around them: what is given comes back as it is."""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from redrive.core.delivery import Delivery
from redrive.core.message import Message
from redrive.core.ports.tracing import Tracing

T = TypeVar("T")

Begin = Callable[[Delivery], Coroutine[Any, Any, Any]]


def traced(tracing: Tracing | None, begin: Begin) -> Begin:
    """A function that begins an attempt, with a span around the attempt."""
    if tracing is None:
        return begin

    async def attempt(delivery: Delivery) -> Any:
        with tracing.attempt((delivery,)):
            return await begin(delivery)

    return attempt


def traced_call(tracing: Tracing | None, call: Callable[[Delivery], T]) -> Callable[[Delivery], T]:
    """A function that makes an attempt, with a span around the attempt."""
    if tracing is None:
        return call

    def attempt(delivery: Delivery) -> T:
        with tracing.attempt((delivery,)):
            return call(delivery)

    return attempt


def spans(tracing: Tracing | None) -> Callable[[Sequence[Delivery]], AbstractContextManager[object]]:
    """What stands around the run of a batch."""
    return (lambda _: nullcontext()) if tracing is None else tracing.attempt


def answered(tracing: Tracing | None, delivery: Delivery, output: Message) -> Message:
    """What a handler returned, with the headers by which whoever handles it finds the trace of what it answers."""
    if tracing is None:
        return output
    with tracing.publish(output.queue, output.headers, answers=delivery) as headers:
        return output._replace(headers=headers)
