"""The gateway: every accepted request ends in an answer, an error, or a letter that can be redriven."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from types import TracebackType
from typing import Self

from redrive.core.errors import (
    DeadlineExceeded,
    GatewayBusy,
    GatewayClosed,
    GatewayError,
    MissingExtra,
    RequestIdConflict,
    RequestRejected,
)
from redrive.core.policy import RetryPolicy, RetrySpec
from redrive.core.ports import Clock, DeadLetterQueue, EventSink
from redrive.gateway.account import Account
from redrive.gateway.alarms import Alarms
from redrive.gateway.classify import with_rules
from redrive.gateway.clock import SteadyClock
from redrive.gateway.exchange import Exchange
from redrive.gateway.journal import Journal
from redrive.gateway.letters import LetterWriter
from redrive.gateway.line import Desks, Line
from redrive.gateway.model import ModelConfig, read_models
from redrive.gateway.request import LLMRequest, LLMResponse
from redrive.gateway.router import Pending, ResponseRouter
from redrive.gateway.stats import ModelStats, stats_of
from redrive.gateway.streams import AnswerStream, Channel
from redrive.gateway.surroundings import NobodyListens, Surroundings
from redrive.gateway.ticket import Ticket
from redrive.gateway.tokens import tokens_of
from redrive.gateway.transport import Transport

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outside:
    """What a gateway takes from the outside where nothing else is said. Tests say otherwise."""

    transport: Transport | None = None
    clock: Clock | None = None
    random: Random | None = None
    sink: EventSink | None = None


class Gateway:
    """Sends requests to models, with the manners of messages. Use it as an async context manager, on one event loop.

    `models` names each model. `policy` is the retry policy of all requests. `log_dir` is where the journal is written,
    None for none. Requests that are given up become letters in `dlq`; without one they end as errors only, and a
    warning says so. The gateway closes neither.

    Every request that `submit` has accepted ends exactly once. Leaving the context closes the gateway: what is not
    answered by then ends as `GatewayClosed`; `drain` waits for it before. Raises `ConfigError` with every mistake.
    """

    def __init__(
        self,
        models: Mapping[str, ModelConfig],
        *,
        policy: RetrySpec = None,
        log_dir: str | os.PathLike[str] | None = None,
        dlq: DeadLetterQueue | None = None,
        outside: Outside | None = None,
    ) -> None:
        self._keys = read_models(models)
        self._models = dict(models)
        self._policy = with_rules(RetryPolicy.of(policy))
        self._log_dir = log_dir
        self._dlq = dlq
        self._outside = outside or Outside()
        self._journal: Journal | None = None
        self._lines: dict[str, Line] = {}
        self._accounts: dict[str, Account] = {}
        self._router = ResponseRouter(self._abandon)
        self._opened = self._closed = False

    async def __aenter__(self) -> Self:
        if self._opened:
            raise GatewayClosed("a gateway is opened once")
        self._opened = True
        clock = self._outside.clock or SteadyClock()
        self._around = Surroundings(
            clock,
            Alarms(clock),
            self._outside.random or Random(),  # noqa: S311 - jitter, not secrets
            self._outside.sink or NobodyListens(),
        )
        self._transport = self._outside.transport or _default_transport()
        self._journal = None if self._log_dir is None else Journal(self._log_dir)
        if self._dlq is None and self._policy.max_retries:  # without retries, somebody else sees to failures
            log.warning("the gateway has no dead letter queue: requests that are given up end as errors only")
        letters = None if self._dlq is None else LetterWriter(self._dlq, self._around)
        for name, config in self._models.items():
            account = self._accounts[name] = Account(name, self._around, self._journal)
            exchange = Exchange(config, key=self._keys.get(name, ""), transport=self._transport, clock=clock)
            desks = Desks(self._router, account, exchange, letters)
            self._lines[name] = Line(config, self._policy, desks=desks, around=self._around)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def ask(self, request: LLMRequest) -> LLMResponse:
        """The answer to a request. Raises the `GatewayError` that it ends in. Cancelling it calls the request off."""
        return await (await self.submit(request))

    async def submit(self, request: LLMRequest, *, wait: bool = True) -> Pending:
        """Accept a request; return the future of its answer. Cancelling the future calls the request off.

        While the model's queue is full it waits, as long as the request's deadline allows; without `wait` it raises
        `GatewayBusy`. The same request again, with the same id, joins the one that is under way. Raises
        `RequestRejected` for one that can never be sent, `RequestIdConflict` for another one with the same id,
        `GatewayClosed`, and `DeadlineExceeded`.
        """
        line = self._line(request)
        body = self._body(line, request)
        return self._join(request, body) or await self._accept(line, request, body, wait=wait)

    @asynccontextmanager
    async def stream(self, request: LLMRequest) -> AsyncIterator[AnswerStream]:
        """The answer as it comes, in a context that calls the request off when it is left before the end.

        The request is retried only before its first words; an answer that breaks off later is `StreamInterrupted`,
        never a success. `attempt_timeout` is then the longest silence. Raises what `submit` raises.
        """
        line = self._line(request)
        body = self._body(line, request, stream=True)
        self._refuse_known(request)
        channel = Channel()
        async with AnswerStream(await self._accept(line, request, body, channel=channel), channel) as stream:
            yield stream

    async def submit_many(self, requests: Sequence[LLMRequest]) -> Sequence[Pending]:
        """Accept requests; return their futures, in order. The future of one that is refused has the error in it."""
        return [await self._submitted(request) for request in requests]

    def cancel(self, request_id: str) -> bool:
        """Call a request off, for all who wait for it; False if there is none under way."""
        return self._router.cancel(request_id)

    async def drain(self) -> None:
        """Wait until nothing is under way. What is submitted meanwhile is waited for, too."""
        while pending := self._router.pending():
            await asyncio.wait(pending)

    def stats(self) -> dict[str, ModelStats]:
        """How things stand, by model."""
        dropped = 0 if self._journal is None else self._journal.dropped
        return {name: stats_of(line, self._accounts[name], dropped=dropped) for name, line in self._lines.items()}

    def wire_of(self, model: str) -> str | None:
        """The form in which a model is spoken to; None if there is none of this name."""
        config = self._models.get(model)
        return None if config is None else config.wire

    async def aclose(self) -> None:
        """Close. Every future that is left ends as `GatewayClosed`. Idempotent."""
        if self._closed or not self._opened:
            self._closed = True
            return
        self._closed = True
        async with AsyncExitStack() as last:  # all of it happens, also to one who is cancelled here
            if self._journal is not None:
                last.push_async_callback(self._journal.aclose)
            if self._outside.transport is None:
                last.push_async_callback(self._transport.aclose)
            last.push_async_callback(self._around.alarms.aclose)
            last.callback(self._router.close, lambda _: GatewayClosed("the gateway was closed before the letter was"))
            for line in self._lines.values():
                line.stop()
            for line in self._lines.values():
                await line.settle()

    def _line(self, request: LLMRequest) -> Line:
        if self._closed or not self._opened:
            raise _named(GatewayClosed("the gateway is not open"), request)
        line = self._lines.get(request.model)
        if line is None:
            known = ", ".join(sorted(self._lines))
            raise _named(RequestRejected(f"model: expected one of {known}, got {request.model!r}"), request)
        return line

    def _body(self, line: Line, request: LLMRequest, *, stream: bool = False) -> bytes:
        try:
            return line.body(request, stream=stream)
        except RequestRejected as error:
            raise _named(error, request) from None

    def _known(self, request: LLMRequest) -> Ticket | None:
        found = (line.tickets.get(request.request_id) for line in self._lines.values())
        return next((ticket for ticket in found if ticket is not None), None)

    def _join(self, request: LLMRequest, body: bytes) -> Pending | None:
        """One more future for the same request; None if none with this id is under way."""
        ticket = self._known(request)
        if ticket is None:
            return None
        if ticket.body != body or ticket.request.model != request.model:
            self._refuse_known(request)
        return self._router.register(request.request_id)

    def _refuse_known(self, request: LLMRequest) -> None:
        if self._known(request) is not None:
            raise _named(RequestIdConflict("another request with this id is under way"), request)

    async def _accept(
        self, line: Line, request: LLMRequest, body: bytes, *, wait: bool = True, channel: Channel | None = None
    ) -> Pending:
        """Take a request in, as soon as there is room."""
        now = self._around.clock.now()
        allowed = request.deadline or line.config.deadline
        deadline_at = None if allowed is None else now + allowed
        if line.room.locked():
            if not wait:
                raise _named(GatewayBusy(f"the queue of {request.model} is full"), request)
            await self._room(line, request, deadline_at)
            try:
                self._line(request)
                joined = self._join(request, body)  # meanwhile somebody else may have asked the same
            except GatewayError:
                line.room.release()
                raise
            if joined is not None:
                line.room.release()
                return joined
        else:
            await line.room.acquire()
        future = self._router.register(request.request_id)
        tokens = 0 if line.config.tokens_per_minute is None else tokens_of(request, body)
        line.accept(Ticket(request, body, tokens, now, deadline_at, ready_at=now, channel=channel))
        return future

    async def _room(self, line: Line, request: LLMRequest, deadline_at: datetime | None) -> None:
        acquiring = asyncio.ensure_future(line.room.acquire())
        alarm = None if deadline_at is None else self._around.alarms.at(deadline_at, partial(acquiring.cancel, "late"))
        try:
            await acquiring
        except asyncio.CancelledError as error:
            if "late" not in error.args:
                raise
            raise _named(DeadlineExceeded("the deadline passed before there was room in the queue"), request) from None
        finally:
            self._around.alarms.call_off(alarm)

    async def _submitted(self, request: LLMRequest) -> Pending:
        try:
            return await self.submit(request)
        except GatewayError as error:
            refused: Pending = asyncio.get_running_loop().create_future()
            refused.set_exception(error)
            refused.exception()  # who never asks for it is not to be reminded by the garbage collector
            return refused

    def _abandon(self, request_id: str) -> None:
        for line in self._lines.values():
            line.abandon(request_id)


def _named(error: GatewayError, request: LLMRequest) -> GatewayError:
    error.request_id, error.model = request.request_id, request.model
    return error


def _default_transport() -> Transport:
    try:
        from redrive.gateway.aiohttp_transport import AiohttpTransport  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("the gateway", extra="gateway") from error
    return AiohttpTransport()
