"""The durable gateway, seen by its callers: requests are persisted, and answers picked up by their ids."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from redrive.core.duration import Duration, as_duration
from redrive.core.errors import (
    ConfigError,
    DeadlineExceeded,
    GatewayClosed,
    GatewayError,
    RequestIdConflict,
    RequestRejected,
)
from redrive.core.event import BatchSettled, Event, LetterWritten
from redrive.core.message import Message
from redrive.core.ports import Broker, Clock
from redrive.core.ports.answers import Answers, KeepsAnswers
from redrive.core.ports.tracing import Tracing
from redrive.gateway.durable_letters import context_of, ending_of, is_about, name_of
from redrive.gateway.request import LLMRequest, LLMResponse
from redrive.gateway.router import Pending, ResponseRouter
from redrive.gateway.ticket import headers_of, queue_of

FIRST_LOOK: Final = timedelta(milliseconds=20)
LAST_LOOK: Final = timedelta(seconds=1)

CALLED_OFF: Final = b""
"""What is kept in place of an answer that nobody wants any more: a worker that finds it sends nothing."""

PATIENCE: Final = timedelta(seconds=2)
"""How long after a deadline its caller waits for a word of what became of the request."""

FAILURES: Final = 10_000
"""Of so many requests it is known how they failed last, until that is told: more are never in one worker's hands."""


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
        self._failures: dict[str, GatewayError] = {}
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
        """An attempt of a worker of this process has failed so: its letter tells it, the journal, and its caller."""
        self._failures.pop(request.request_id, None)
        self._failures[request.request_id] = error
        if len(self._failures) > FAILURES:
            del self._failures[next(iter(self._failures))]  # the oldest, of which nobody will ask any more
        wanted = self._wanted.get(request.request_id)
        if wanted is not None and wanted.fingerprint == request.fingerprint:
            wanted.failure = error

    def take_failure(self, request_id: str) -> GatewayError | None:
        """How the last attempt for a request failed, where it was made here; told once."""
        return self._failures.pop(request_id, None)

    def context(self, message: Message) -> dict[str, Any]:
        """What the letter of a request tells beside its payload."""
        return context_of(message, self._failures.get(name_of(message.headers)))

    def hear(self, event: Event) -> None:
        """Hear of a letter that a worker of this process has written: the request has ended in an error."""
        if isinstance(event, BatchSettled):
            for written in event.written():
                self.hear(written)
        if not isinstance(event, LetterWritten):
            return
        letter, request_id = event.letter, name_of(event.letter.headers)
        wanted = self._wanted.get(request_id)
        if request_id in self._router and (wanted is None or is_about(letter, wanted.fingerprint)):
            error = ending_of(letter, None if wanted is None else wanted.failure)
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


def is_other(answer: LLMResponse, fingerprint: str) -> bool:
    """Whether an answer is to another request than the one with this fingerprint; of some nobody knows."""
    return answer.fingerprint not in ("", fingerprint)


def _named(error: GatewayError, request_id: str) -> GatewayError:
    error.request_id = request_id
    return error
