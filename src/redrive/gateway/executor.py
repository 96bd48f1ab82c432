"""The handler of a durable gateway's worker: a message is a request, and a run of it is an attempt."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from redrive.core.attempt import load_trail
from redrive.core.context import ContextSpec
from redrive.core.delivery import Delivery
from redrive.core.errors import (
    DeadlineExceeded,
    GatewayClosed,
    GatewayError,
    RateLimited,
    RequestIdConflict,
    RetriesExhausted,
    ServerFault,
    TransportFault,
)
from redrive.core.message import Message
from redrive.core.outcome import GiveUp
from redrive.core.policy import RetryPolicy, RetrySpec
from redrive.core.ports import Clock
from redrive.core.ports.answers import Answers
from redrive.core.reason import Reason
from redrive.gateway.classify import with_rules
from redrive.gateway.durable import CALLED_OFF, is_other
from redrive.gateway.durable_letters import UNSURE, may_have_run
from redrive.gateway.endings import own_copy
from redrive.gateway.gateway import Gateway
from redrive.gateway.letters import KIND
from redrive.gateway.model import ModelConfig
from redrive.gateway.request import LLMRequest, LLMResponse

SOON: Final = timedelta(milliseconds=1)


AGAIN: Final = tuple(timedelta(milliseconds=length) for length in (100, 200, 400, 800, 1600))
"""How long to wait before an answer is put again to where it is to be kept."""


def consumer_options(retry: RetrySpec, model: ModelConfig, *, context: ContextSpec) -> Mapping[str, Any]:
    """How the consumer is treated whose handler is an `Executor`: its policy knows the gateway's errors."""
    return {
        "retry": with_rules(RetryPolicy.of(retry)),
        "context": context,
        "concurrency": model.concurrency,
        "kind": KIND,
    }


class Executor:
    """Makes one attempt for a message; the worker that runs it retries, counts crashes, and writes dead letters.

    The gateway brings limits, fairness and the wire. An answer
    is kept before its message is acked: if the process dies in between, the message comes again, finds the answer
    there, and is not sent again. Nor is one that was called off. What the handler raises is the attempt's error, by
    which the worker's policy decides; its code says if the provider may have done it (`UNSURE`). `arrived` is told of
    answers that are kept, `failed` of errors, each an object of its own.

    After `stop` nothing is sent any more: whatever has not been waits for its worker to take it back.
    """

    def __init__(
        self,
        gateway: Gateway,
        answers: Answers,
        *,
        clock: Clock,
        arrived: Callable[[LLMResponse], None] = lambda _: None,
        failed: Callable[[LLMRequest, GatewayError], None] = lambda _, __: None,
    ) -> None:
        self._gateway = gateway
        self._answers = answers
        self._clock = clock
        self._arrived = arrived
        self._failed = failed
        self._stopped = False
        self._at_work: Counter[str] = Counter()  # requests, by how many messages want them
        self._idle = asyncio.Event()

    async def handle(self, message: Message, delivery: Delivery) -> None:
        """Answer the request in a message. Raises the `GatewayError` of the attempt, `GiveUp` after its deadline."""
        request = LLMRequest.from_json(message.body)
        if not self._stopped:
            self._at_work[request.request_id] += 1
            try:
                await self._answer(request, message, delivery)
            except GatewayClosed:
                if not self._stopped:
                    raise
            else:
                return
            finally:
                self._ended(request.request_id)
        await asyncio.Event().wait()  # an attempt that was not made is no failure: the worker hands the message back

    async def stop(self, *, within: timedelta) -> None:
        """Send nothing more, and wait until what was sent has been answered, or has failed. Idempotent."""
        self._stopped = True
        for request_id in [*self._at_work]:
            self._gateway.withdraw(request_id)
        if self._at_work:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within.total_seconds()):
                    await self._idle.wait()

    def _ended(self, request_id: str) -> None:
        self._at_work[request_id] -= 1
        if not self._at_work[request_id]:
            del self._at_work[request_id]
        if self._stopped and not self._at_work:
            self._idle.set()

    async def _answer(self, request: LLMRequest, message: Message, delivery: Delivery) -> None:
        if await self._has_answer(request):
            return
        try:
            response = await self._attempt(request, _ends_at(request, message, delivery), delivery)
            possibly = response.possibly_executed or _may_have_run(delivery)
            kept = replace(
                response, attempts=delivery.attempt, possibly_executed=possibly, fingerprint=request.fingerprint
            )
            await self._keep(kept)
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if (task is not None and task.cancelling()) or not await self._answered_meanwhile(request):
                self._tell(request, error, before=_may_have_run(delivery))
                raise
            return  # answered meanwhile by another worker, or called off: there is nothing left to give up
        self._arrived(kept)

    async def _keep(self, answer: LLMResponse) -> None:
        """Keep an answer. It is paid for: a place that is away for a moment is asked again."""
        for pause in (*AGAIN, None):
            try:
                await self._answers.put(answer.request_id, answer.to_json())
            except Exception as error:
                if pause is None:
                    raise TransportFault("the answer could not be kept", possibly_executed=True) from error
                await self._clock.sleep(pause)
            else:
                return

    async def _answered_meanwhile(self, request: LLMRequest) -> bool:
        """As `_has_answer`; False if that cannot be known now, so that the attempt's own error is told."""
        try:
            return await self._has_answer(request)
        except GatewayError:
            raise
        except Exception:  # noqa: BLE001 - an answer that is there is found by the next attempt
            return False

    async def _has_answer(self, request: LLMRequest) -> bool:
        """Whether it was answered, or called off. Raises `RequestIdConflict` if another one with its id was."""
        found = await self._answers.get(request.request_id)
        if found is None or found == CALLED_OFF:
            return found is not None
        if is_other(LLMResponse.from_json(found), request.fingerprint):
            conflict = RequestIdConflict("another request with this id was answered")
            self._tell(request, conflict)
            raise conflict
        return True

    def _tell(self, request: LLMRequest, error: BaseException, *, before: bool = False) -> None:
        """Tell of an error; what is told of it is not what the worker writes down, whose trail has less room."""
        cause = error.__cause__ if isinstance(error, GiveUp) else error
        if not isinstance(cause, GatewayError):
            return
        told = own_copy(cause)
        told.possibly_executed = cause.possibly_executed or before
        self._failed(request, told)
        if cause.possibly_executed:
            cause.code = UNSURE

    async def _attempt(self, request: LLMRequest, ends_at: datetime | None, delivery: Delivery) -> LLMResponse:
        if ends_at is not None:
            left = ends_at - self._clock.now()
            if left <= SOON:
                late = DeadlineExceeded("the deadline passed before the request could be sent")
                raise _late(str(late)) from late
            request = request.within(left)
        try:
            limited = _was_limited(delivery)
            return await self._gateway.attempt(request, failures=delivery.failures, limited=limited)
        except GatewayError as error:
            failure = (error.last or error) if isinstance(error, RetriesExhausted) else error
            if ends_at is not None and self._is_late(failure, ends_at):
                raise _late(str(failure)) from failure
            raise failure from None

    def _is_late(self, failure: GatewayError, ends_at: datetime) -> bool:
        """Whether the deadline leaves no time for another attempt, as far as the provider has said when."""
        if isinstance(failure, DeadlineExceeded):
            return True
        if failure.retry_after is None or not isinstance(failure, RateLimited | ServerFault):
            return False
        due_at = self._clock.now() + min(failure.retry_after, self._gateway.policy.told_cap)
        if isinstance(failure, RateLimited) and due_at >= ends_at:
            failure.until = failure.until or due_at
        return due_at >= ends_at


def _may_have_run(delivery: Delivery) -> bool:
    """Whether a provider may have done this before: a worker died over it, or an attempt says so."""
    return bool(delivery.alone or delivery.crashes) or may_have_run(load_trail(delivery.trail))


def _was_limited(delivery: Delivery) -> bool:
    """Whether the last attempt met a rate limit: then its retry is no matter of the allowance."""
    trail = load_trail(delivery.trail) if delivery.failures else ()
    return bool(trail) and trail[-1].error_type.rpartition(".")[2] == RateLimited.__name__


def _ends_at(request: LLMRequest, message: Message, delivery: Delivery) -> datetime | None:
    """When the deadline of a request is; a request that was redriven has its time anew."""
    if request.deadline is None:
        return None
    start = message.published_at if delivery.generation == 0 else delivery.first_attempt_at
    return (start or delivery.received_at) + request.deadline


def _late(why: str) -> GiveUp:
    return GiveUp(why, code="deadline", reason=Reason.DEADLINE)
