"""A handler called once, as its worker would call it, with nothing around it."""

import inspect
from collections.abc import Awaitable, Callable, Sequence

from redrive.core.delivery import Delivery
from redrive.core.outcome import GiveUp, RetryLater
from redrive.worker.consumer import Consumer
from redrive.worker.outcomes import NotAccepted
from redrive.worker.payload import read_signature


def handler_of(consumer: Consumer, resources: Sequence[object] = ()) -> Callable[[Delivery], Awaitable[object]]:
    """A function that runs the consumer's handler on one delivery and returns what it returns.

    No time limit, no retry, no thread: a debugger is welcome. Whatever the handler raises comes through; so do
    `InvalidPayload`, `NotAccepted`, and the outcome that a batch handler returns for its one item.
    """
    batch = consumer.batch_size is not None
    signature = read_signature(consumer.handler, resources=resources, batch=batch)
    validation = consumer.treatment.validate
    if validation is not None and validation.run is not None:
        signature = signature.after(validation.run)

    async def call(delivery: Delivery) -> object:
        arguments = signature.arguments(delivery)
        result = consumer.handler(*([one] for one in arguments)) if batch else consumer.handler(*arguments)
        if inspect.isawaitable(result):
            result = await result
        if batch:
            (result,) = result or (None,)
        if isinstance(result, RetryLater | GiveUp):
            raise result
        accept = consumer.treatment.accept
        if accept is not None and not accept(result):
            raise NotAccepted(f"accept= does not count {result!r:.200} as success")
        return result

    return call
