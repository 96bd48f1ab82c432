"""The handler of a durable gateway's worker: a message is a request, and a run of it is an attempt."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from redrive.core.attempt import load_trail
from redrive.core.delivery import Delivery
from redrive.core.errors import AttemptTimeout, DeadlineExceeded, RateLimited, RetriesExhausted, TransportFault
from redrive.core.message import Message
from redrive.core.outcome import GiveUp
from redrive.core.policy import RetryPolicy, RetrySpec
from redrive.core.ports import Clock
from redrive.core.ports.answers import Answers
from redrive.core.reason import Reason
from redrive.gateway.classify import with_rules
from redrive.gateway.gateway import Gateway
from redrive.gateway.letters import KIND
from redrive.gateway.model import ModelConfig
from redrive.gateway.request import LLMRequest, LLMResponse

SOON: Final = timedelta(milliseconds=1)
_UNSURE: Final = (TransportFault.__name__, AttemptTimeout.__name__)


def consumer_options(retry: RetrySpec, model: ModelConfig) -> Mapping[str, Any]:
    """How the consumer is treated whose handler is an `Executor`: its policy knows the gateway's errors."""
    return {
        "retry": with_rules(RetryPolicy.of(retry)),
        "context": ["request_id", "agent_id", "model"],
        "concurrency": model.concurrency,
        "kind": KIND,
    }


class Executor:
    """Makes one attempt for a message; the worker that runs it retries, counts crashes, and writes dead letters.

    The gateway brings limits, fairness and the wire. An answer
    is kept before its message is acked: if the process dies in between, the message comes again, finds the answer
    there, and is not sent again. Nor is one that was called off. What the handler raises is the attempt's error, by
    which the worker's policy decides; `arrived` is told of answers that are kept.
    """

    def __init__(
        self,
        gateway: Gateway,
        answers: Answers,
        *,
        clock: Clock,
        arrived: Callable[[LLMResponse], None] = lambda _: None,
    ) -> None:
        self._gateway = gateway
        self._answers = answers
        self._clock = clock
        self._arrived = arrived

    async def handle(self, message: Message, delivery: Delivery) -> None:
        """Answer the request in a message. Raises the `GatewayError` of the attempt, `GiveUp` after its deadline."""
        request = LLMRequest.from_json(message.body)
        if await self._answers.get(request.request_id) is not None:
            return
        try:
            response = await self._attempt(request, _ends_at(request, message, delivery), failures=delivery.failures)
        except (Exception, asyncio.CancelledError):
            task = asyncio.current_task()
            if (task is not None and task.cancelling()) or await self._answers.get(request.request_id) is None:
                raise
            return  # answered meanwhile by another worker, or called off: there is nothing left to give up
        possibly = response.possibly_executed or _may_have_run(delivery)
        kept = replace(response, attempts=delivery.attempt, possibly_executed=possibly)
        await self._answers.put(request.request_id, kept.to_json())
        self._arrived(kept)

    async def _attempt(self, request: LLMRequest, ends_at: datetime | None, *, failures: int) -> LLMResponse:
        if ends_at is not None:
            left = ends_at - self._clock.now()
            if left <= SOON:
                raise _late("the deadline passed before the request could be sent")
            request = request.within(left)
        try:
            return await self._gateway.attempt(request, failures=failures)
        except RetriesExhausted as error:
            raise error.last or error from None
        except DeadlineExceeded as error:
            if ends_at is not None:
                raise _late(str(error)) from error
            raise
        except RateLimited as error:
            if ends_at is not None and error.until is not None and error.until >= ends_at:
                raise _late(str(error)) from error
            raise


def _may_have_run(delivery: Delivery) -> bool:
    """Whether a provider may have done this before: a worker died over it, or an attempt ended without a reply."""
    if delivery.alone or delivery.crashes:
        return True
    return any(attempt.error_type.rpartition(".")[2] in _UNSURE for attempt in load_trail(delivery.trail))


def _ends_at(request: LLMRequest, message: Message, delivery: Delivery) -> datetime | None:
    """When the deadline of a request is; a request that was redriven has its time anew."""
    if request.deadline is None:
        return None
    start = message.published_at if delivery.generation == 0 else delivery.first_attempt_at
    return (start or delivery.received_at) + request.deadline


def _late(why: str) -> GiveUp:
    return GiveUp(why, code="deadline", reason=Reason.DEADLINE)
