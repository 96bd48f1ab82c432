"""Dead letter queues for the wrapper: on a broker, and for callers from any event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from redrive.core.errors import BrokerError, DeadLetterError, DeadLetterQueueClosed
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.place import named
from redrive.core.ports import Broker, DeadLetterQueue
from redrive.core.redrive import RedriveOutcome
from redrive.core.wire import dump_outcome
from redrive.worker.private_loop import PRIVATE_LOOP


class BrokerDeadLetterQueue:
    """Letters go to the broker's DLQ of the queue they name, outcomes to its outcomes queue.

    Like its broker it belongs to one event loop. A letter is written once per (letter_id, generation). An outcome
    sent twice is there twice; whoever reads it takes the second for the first.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._closed = False

    async def send(self, letter: DeadLetter) -> None:
        self._refuse_if_closed()
        try:
            await self._broker.dead_letters(letter.queue).send(letter)
        except BrokerError as error:
            raise DeadLetterError(f"the letter of a message from {letter.queue} was not written: {error}") from error

    async def report(self, outcome: RedriveOutcome) -> None:
        self._refuse_if_closed()
        queue = named(self._broker.capabilities.outcomes, outcome.queue)
        await self._broker.publish(queue, [Message(id="", queue=queue, body=dump_outcome(outcome))])

    async def aclose(self) -> None:
        self._closed = True
        await self._broker.aclose()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise DeadLetterQueueClosed(f"the dead letter queue on {self._broker.name} has been closed")


class AnyLoopDeadLetterQueue:
    """A queue that may be used from any event loop and any thread, also by the children of a fork.

    Another queue does the work, on our private loop; each process opens its own at the first use. A child leaves its
    parent's alone: closing an inherited connection would disturb its owner.
    """

    def __init__(self, open_queue: Callable[[], DeadLetterQueue]) -> None:
        self._open_queue = open_queue
        self._queues: dict[asyncio.AbstractEventLoop, DeadLetterQueue] = {}
        self._closed = False

    async def send(self, letter: DeadLetter) -> None:
        await _on_private_loop(self._send(letter))

    async def report(self, outcome: RedriveOutcome) -> None:
        await _on_private_loop(self._report(outcome))

    async def aclose(self) -> None:
        await _on_private_loop(self._aclose())

    async def _send(self, letter: DeadLetter) -> None:
        await self._queue().send(letter)

    async def _report(self, outcome: RedriveOutcome) -> None:
        await self._queue().report(outcome)

    async def _aclose(self) -> None:
        self._closed = True
        queue = self._queues.pop(asyncio.get_running_loop(), None)
        if queue is not None:
            await queue.aclose()

    def _queue(self) -> DeadLetterQueue:
        if self._closed:
            raise DeadLetterQueueClosed("this dead letter queue has been closed")
        loop = asyncio.get_running_loop()  # another one in each process
        if loop not in self._queues:
            self._queues[loop] = self._open_queue()
        return self._queues[loop]


async def _on_private_loop(work: Coroutine[Any, Any, None]) -> None:
    await asyncio.wrap_future(PRIVATE_LOOP.submit(work))
