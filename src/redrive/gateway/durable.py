"""The durable gateway, seen by its callers: requests are persisted, and answers picked up by their ids."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from redrive.core.attempt import Attempt
from redrive.core.duration import Duration, as_duration
from redrive.core.errors import (
    AttemptTimeout,
    ConfigError,
    DeadlineExceeded,
    GatewayClosed,
    GatewayError,
    RateLimited,
    RequestIdConflict,
    RequestRejected,
    RetriesExhausted,
    TransportFault,
)
from redrive.core.event import BatchSettled, Event, LetterWritten
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.ports import Broker, Clock
from redrive.core.ports.answers import Answers, KeepsAnswers
from redrive.core.ports.tracing import Tracing
from redrive.core.reason import Reason
from redrive.gateway.endings import because
from redrive.gateway.request import LLMRequest, LLMResponse
from redrive.gateway.router import Pending, ResponseRouter
from redrive.gateway.ticket import headers_of, queue_of

FIRST_LOOK: Final = timedelta(milliseconds=20)
LAST_LOOK: Final = timedelta(seconds=1)

CALLED_OFF: Final = b""
"""What is kept in place of an answer that nobody wants any more: a worker that finds it sends nothing."""

PATIENCE: Final = timedelta(seconds=2)
"""How long after a deadline its caller waits for a word of what became of the request."""

_UNSURE: Final = (TransportFault.__name__, AttemptTimeout.__name__)


@dataclass(slots=True)
class _Wanted:
    """A request that somebody here waits for: what it asks, until when, and how its last attempt here has failed."""

    fingerprint: str
    ends_at: datetime | None
    failure: GatewayError | None = None


class DurableGateway:
    """Hands requests to the workers of a broker, and fetches answers. Any process may do either; it makes no calls.

    `submit` returns when the request is as durable as the broker is. A worker answers it (`Executor`), also after this
    process has died. Belongs to one event loop; whoever made it closes broker and answers.
    """

    def __init__(self, broker: Broker, answers: Answers, *, clock: Clock, tracing: Tracing | None = None) -> None:
        self.tracing = tracing
        self.broker = broker
        self.answers = answers
        self.clock = clock
        self._router = ResponseRouter()
        self._wanted: dict[str, _Wanted] = {}
        self._looking: asyncio.Task[None] | None = None

    async def submit(self, request: LLMRequest) -> str:
        """Persist a request; return its id. Raises `BrokerUnavailable`."""
        (request_id,) = await self.submit_many([request])
        return request_id

    async def submit_many(self, requests: Sequence[LLMRequest]) -> Sequence[str]:
        """Persist requests, those of one model in one step; return their ids. Raises `BrokerUnavailable`."""
        by_queue: dict[str, list[Message]] = {}
        for request in requests:
            queue = queue_of(request.model)
            by_queue.setdefault(queue, []).append(self._message(request, queue))
        for queue, messages in by_queue.items():
            await self.broker.publish(queue, messages)
        return [request.request_id for request in requests]

    def refuse_other(self, request: LLMRequest) -> None:
        """Raise `RequestIdConflict` if somebody here waits for the answer to another request with the same id."""
        wanted = self._wanted.get(request.request_id)
        if wanted is not None and wanted.fingerprint != request.fingerprint:
            raise _named(RequestIdConflict("another request with this id is under way"), request.request_id)

    def want(self, request: LLMRequest) -> Pending:
        """The future of the answer to a request that was submitted here, which also ends soon after its deadline."""
        ends_at = None if request.deadline is None else self.clock.now() + request.deadline
        self._wanted.setdefault(request.request_id, _Wanted(request.fingerprint, ends_at))
        return self.wait(request.request_id)

    def wait(self, request_id: str) -> Pending:
        """The future of an answer. Cancelling it ends the waiting, not the request.

        It ends in an error if a worker of this process gives the request up. Of a letter that another process has
        written it knows nothing.
        """
        future = self._router.register(request_id)
        future.add_done_callback(lambda _: self._forget(request_id))
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())
        return future

    async def answer(self, request_id: str) -> LLMResponse | None:
        """The answer to a request, if it is there. Raises `GatewayError` if the request was called off."""
        kept = await self.answers.get(request_id)
        if kept == CALLED_OFF:
            raise _named(RequestRejected("the request was called off"), request_id)
        return None if kept is None else LLMResponse.from_json(kept)

    async def result(self, request_id: str, *, within: Duration = "10m") -> LLMResponse:
        """The answer to a request, waited for. Raises `TimeoutError`: it may still come, or have become a letter."""
        ends_at = self.clock.now() + as_duration(within)
        pause = FIRST_LOOK
        while (found := await self.answer(request_id)) is None:
            left = ends_at - self.clock.now()
            if left <= timedelta(0):
                raise TimeoutError(f"no answer to {request_id} yet")
            await self.clock.sleep(min(pause, left))
            pause = min(pause * 2, LAST_LOOK)
        return found

    async def call_off(self, request_id: str) -> None:
        """Nobody wants the answer any more: a request that was not sent will not be, nor redriven. Idempotent.

        One that was answered keeps its answer.
        """
        await self.answers.put(request_id, CALLED_OFF)
        self._router.cancel(request_id)

    def cancel(self, request_id: str) -> bool:
        """End the waiting of all who wait here for a request, which goes on; False if nobody does."""
        return self._router.cancel(request_id)

    def pending(self) -> list[Pending]:
        """The futures of all who wait here."""
        return self._router.pending()

    def arrived(self, response: LLMResponse) -> None:
        """An answer was kept by a worker of this process."""
        wanted = self._wanted.get(response.request_id)
        if response.request_id in self._router and not (wanted and is_other(response, wanted.fingerprint)):
            self._router.resolve(response.request_id, response)

    def failed(self, request: LLMRequest, error: GatewayError) -> None:
        """An attempt of a worker of this process has failed so: if it was the last, its caller is told."""
        wanted = self._wanted.get(request.request_id)
        if wanted is not None and wanted.fingerprint == request.fingerprint:
            wanted.failure = error

    def hear(self, event: Event) -> None:
        """Hear of a letter that a worker of this process has written: the request has ended in an error."""
        if isinstance(event, BatchSettled):
            for written in event.written():
                self.hear(written)
        if not isinstance(event, LetterWritten):
            return
        letter, request_id = event.letter, name_of(event.letter.headers)
        wanted = self._wanted.get(request_id)
        if request_id in self._router and (wanted is None or _is_about(letter, wanted.fingerprint)):
            error = _error_of(letter, None if wanted is None else wanted.failure)
            self._router.resolve_error(request_id, _named(error, request_id))

    async def aclose(self) -> None:
        """Nobody waits any more: futures that are left end as `GatewayClosed`. Their requests go on. Idempotent."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        self._router.close(lambda _: GatewayClosed("the gateway was closed; the request goes on"))

    def _message(self, request: LLMRequest, queue: str) -> Message:
        own = headers_of(request)
        with nullcontext(own) if self.tracing is None else self.tracing.publish(queue, own) as headers:
            return Message("", queue, request.to_json(), headers, key=request.agent_id.encode())

    async def _look(self) -> None:
        """Look for answers of other processes, all by turns, seldom enough to be no load."""
        pause = FIRST_LOOK
        while len(self._router):
            await self.clock.sleep(pause)
            began = self.clock.now()
            for request_id in self._router.names():
                await self._look_for(request_id)
            self._end_late()
            took = self.clock.now() - began
            pause = max(min(pause * 2, LAST_LOOK), took * 9)

    async def _look_for(self, request_id: str) -> None:
        try:
            found = await self.answer(request_id)
        except GatewayError as error:
            self._router.resolve_error(request_id, error)
        except Exception:  # noqa: BLE001 - answers that cannot be had now are asked for again
            return
        else:
            wanted = self._wanted.get(request_id)
            if found is None:
                return
            if wanted is not None and is_other(found, wanted.fingerprint):
                conflict = RequestIdConflict("another request with this id was answered")
                self._router.resolve_error(request_id, _named(conflict, request_id))
            else:
                self._router.resolve(request_id, found)

    def _end_late(self) -> None:
        """End the waiting for those whose deadline has passed, whether or not anybody works on them."""
        now = self.clock.now()
        for request_id, wanted in [*self._wanted.items()]:
            if wanted.ends_at is not None and wanted.ends_at + PATIENCE <= now:
                error = DeadlineExceeded("the deadline has passed, and nobody has said what became of the request")
                self._router.resolve_error(request_id, _named(error, request_id))

    def _forget(self, request_id: str) -> None:
        if not self._router.is_wanted(request_id):
            self._wanted.pop(request_id, None)


def answers_of(broker: Broker) -> Answers:
    """The answers beside a broker's queues. Raises `ConfigError` if it has no place for them."""
    if not isinstance(broker, KeepsAnswers):
        raise ConfigError(f"answers: {broker.name} has no place for them; give Outside(answers=…)")
    return broker.answers()


def name_of(headers: Sequence[tuple[str, bytes]]) -> str:
    """The id of the request in a message with these headers; empty if it says none."""
    return next((value.decode("utf-8", "replace") for name, value in headers if name == "request_id"), "")


def is_other(answer: LLMResponse, fingerprint: str) -> bool:
    """Whether an answer is to another request than the one with this fingerprint; of some nobody knows."""
    return answer.fingerprint not in ("", fingerprint)


def may_have_run(attempts: Iterable[Attempt]) -> bool:
    """Whether one of these attempts ended without a reply: the provider may have done it."""
    return any(attempt.error_type.rpartition(".")[2] in _UNSURE for attempt in attempts)


def _is_about(letter: DeadLetter, fingerprint: str) -> bool:
    """Whether a letter is of the request with this fingerprint, as far as its payload can be read."""
    try:
        return letter.payload is None or LLMRequest.from_json(letter.payload).fingerprint == fingerprint
    except GatewayError:
        return True


def _error_of(letter: DeadLetter, failure: GatewayError | None) -> GatewayError:
    """What the caller of a request is told that has become a letter; `failure` is the last one, where it was here."""
    text = f"{letter.error_type}: {letter.error_message}"[:500]
    error: GatewayError
    if letter.reason is Reason.REJECTED:
        error = failure or RequestRejected(text)
    elif letter.reason is Reason.DEADLINE:
        told = isinstance(failure, RateLimited) and failure.until is not None
        error = failure if told and failure is not None else DeadlineExceeded(text)
    else:
        error = RetriesExhausted(f"{letter.retry_count} attempts failed, the last one with {text}")
        error.last = failure
    if failure is not None and error is not failure:
        because(error, failure)
    error.code, error.letter_id = letter.error_code or error.code, letter.letter_id
    error.possibly_executed = error.possibly_executed or may_have_run(letter.attempts)
    if isinstance(error, RetriesExhausted | DeadlineExceeded):
        error.attempts = letter.retry_count
    return error


def _named(error: GatewayError, request_id: str) -> GatewayError:
    error.request_id = request_id
    return error
