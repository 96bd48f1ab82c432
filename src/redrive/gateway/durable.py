"""The durable gateway, seen by its callers: requests are persisted, and answers picked up by their ids."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from redrive.core.duration import Duration, as_duration
from redrive.core.message import Message
from redrive.core.ports import Broker, Clock
from redrive.core.ports.answers import Answers
from redrive.gateway.request import LLMRequest, LLMResponse
from redrive.gateway.ticket import headers_of, queue_of

FIRST_LOOK: Final = timedelta(milliseconds=20)
LAST_LOOK: Final = timedelta(seconds=1)


class DurableGateway:
    """Hands requests to the workers of a broker, and fetches answers. Any process may do either; it makes no calls.

    `submit` returns when the request is as durable as the broker is. A worker answers it (`Executor`), also after this
    process has died.
    """

    def __init__(self, broker: Broker, answers: Answers, *, clock: Clock) -> None:
        self._broker = broker
        self._answers = answers
        self._clock = clock

    async def submit(self, request: LLMRequest) -> str:
        """Persist a request; return its id. Raises `BrokerUnavailable`."""
        (request_id,) = await self.submit_many([request])
        return request_id

    async def submit_many(self, requests: Sequence[LLMRequest]) -> Sequence[str]:
        """Persist requests, those of one model in one step; return their ids. Raises `BrokerUnavailable`."""
        by_queue: dict[str, list[Message]] = {}
        for request in requests:
            queue = queue_of(request.model)
            by_queue.setdefault(queue, []).append(_message(request, queue))
        for queue, messages in by_queue.items():
            await self._broker.publish(queue, messages)
        return [request.request_id for request in requests]

    async def answer(self, request_id: str) -> LLMResponse | None:
        """The answer to a request, if it is there."""
        kept = await self._answers.get(request_id)
        return None if kept is None else LLMResponse.from_json(kept)

    async def result(self, request_id: str, *, within: Duration = "10m") -> LLMResponse:
        """The answer to a request, waited for. Raises `TimeoutError`: it may still come, or have become a letter."""
        ends_at = self._clock.now() + as_duration(within)
        pause = FIRST_LOOK
        while (found := await self.answer(request_id)) is None:
            left = ends_at - self._clock.now()
            if left <= timedelta(0):
                raise TimeoutError(f"no answer to {request_id} yet")
            await self._clock.sleep(min(pause, left))
            pause = min(pause * 2, LAST_LOOK)
        return found


def _message(request: LLMRequest, queue: str) -> Message:
    return Message("", queue, request.to_json(), headers_of(request), key=request.agent_id.encode())
