"""The handler of a durable gateway's worker: a message is a request, and a run of it is an attempt."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from redrive.core.delivery import Delivery
from redrive.core.errors import DeadlineExceeded, RateLimited, RetriesExhausted
from redrive.core.message import Message
from redrive.core.outcome import GiveUp
from redrive.core.policy import RetryPolicy, RetrySpec
from redrive.core.ports import Clock
from redrive.core.ports.answers import Answers
from redrive.core.reason import Reason
from redrive.gateway.classify import with_rules
from redrive.gateway.gateway import Gateway
from redrive.gateway.request import LLMRequest, LLMResponse

SOON: Final = timedelta(milliseconds=1)


def durable_policy(spec: RetrySpec = None) -> RetryPolicy:
    """The retry policy for a worker whose handler is an `Executor`: it knows the gateway's errors."""
    return with_rules(RetryPolicy.of(spec))


class Executor:
    """Makes one attempt for a message; the worker that runs it retries, counts crashes, and writes dead letters.

    The gateway brings limits, fairness and the wire; it should have `policy=0` and no dead letter queue. An answer is
    kept before its message is acked: if the process dies in between, the message comes again, finds the answer there,
    and is not sent again. What the handler raises is the attempt's error, by which the worker's policy decides.
    """

    def __init__(self, gateway: Gateway, answers: Answers, *, clock: Clock) -> None:
        self._gateway = gateway
        self._answers = answers
        self._clock = clock

    async def handle(self, message: Message, delivery: Delivery) -> None:
        """Answer the request in a message. Raises the `GatewayError` of the attempt, `GiveUp` after its deadline."""
        request = LLMRequest.from_json(message.body)
        if await self._answers.get(request.request_id) is not None:
            return
        ends_at = _ends_at(request, message, delivery)
        response = await self._attempt(request, ends_at)
        possibly = response.possibly_executed or delivery.attempt > 1
        kept = replace(response, attempts=delivery.attempt, possibly_executed=possibly)
        await self._answers.put(request.request_id, kept.to_json())

    async def _attempt(self, request: LLMRequest, ends_at: datetime | None) -> LLMResponse:
        if ends_at is not None:
            left = ends_at - self._clock.now()
            if left <= SOON:
                raise _late("the deadline passed before the request could be sent")
            request = request.within(left)
        try:
            return await self._gateway.ask(request)
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


def _ends_at(request: LLMRequest, message: Message, delivery: Delivery) -> datetime | None:
    """When the deadline of a request is; a request that was redriven has its time anew."""
    if request.deadline is None:
        return None
    start = message.published_at if delivery.generation == 0 else delivery.first_attempt_at
    return (start or delivery.received_at) + request.deadline


def _late(why: str) -> GiveUp:
    return GiveUp(why, code="deadline", reason=Reason.DEADLINE)
