"""The gateway: every accepted request ends in an answer, an error, or a letter that can be redriven."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from types import TracebackType
from typing import Self

from redrive.core.duration import Duration
from redrive.core.errors import ConfigError, GatewayClosed, GatewayError, RequestIdConflict
from redrive.core.event import Event
from redrive.core.policy import RetryPolicy, RetrySpec
from redrive.core.ports import Broker, DeadLetterQueue, EventSink
from redrive.gateway.account import Account
from redrive.gateway.alarms import Alarms
from redrive.gateway.classify import with_rules
from redrive.gateway.clock import SteadyClock
from redrive.gateway.durable import DurableGateway, answers_of
from redrive.gateway.durable_rows import rows_of
from redrive.gateway.exchange import Exchange
from redrive.gateway.journal import Journal
from redrive.gateway.letters import LetterWriter
from redrive.gateway.line import Desks, Line
from redrive.gateway.model import ModelConfig, read_models
from redrive.gateway.reception import Reception, named
from redrive.gateway.request import LLMRequest, LLMResponse
from redrive.gateway.router import Pending, ResponseRouter, refused
from redrive.gateway.stats import ModelStats, stats_of
from redrive.gateway.streams import AnswerStream, Channel
from redrive.gateway.surroundings import NobodyListens, Outside, Surroundings, default_transport
from redrive.gateway.ticket import queue_of

log = logging.getLogger(__name__)


class Gateway:
    """Sends requests to models, with the manners of messages. Use it as an async context manager, on one event loop.

    `models` names each model. `policy` is the retry policy of all requests. `log_dir` is where the journal is written,
    None for none. Requests that are given up become letters in `dlq`; without one they end as errors only, and a
    warning says so. With a `broker` the gateway is durable: requests are persisted before `submit` returns, answered by
    the workers of `wiring.answering`, here or elsewhere, and given up into the broker's own DLQ. Streams are not
    persisted. The gateway closes neither.

    Every request that `submit` has accepted ends exactly once. Leaving the context closes the gateway: what is not
    answered by then ends as `GatewayClosed`; `drain` waits for it before. Raises `ConfigError` with every mistake.
    """

    def __init__(
        self,
        models: Mapping[str, ModelConfig],
        *,
        policy: RetrySpec = None,
        log_dir: str | os.PathLike[str] | None = None,
        broker: Broker | None = None,
        dlq: DeadLetterQueue | None = None,
        outside: Outside | None = None,
    ) -> None:
        self._keys = read_models(models)
        self.models = dict(models)
        self.policy = with_rules(RetryPolicy.of(policy))
        self.durable: DurableGateway | None = None
        self._log_dir = log_dir
        self._broker = broker
        self._dlq = dlq
        self._outside = outside or Outside()
        self._journal: Journal | None = None
        self._lines: dict[str, Line] = {}
        self._accounts: dict[str, Account] = {}
        self._router = ResponseRouter(self._abandon)
        self._opened = self._closed = False

    async def __aenter__(self) -> Self:
        if self._opened or self._closed:
            raise GatewayClosed("a gateway is opened once")
        self._opened = True
        clock = self._outside.clock or SteadyClock()
        if self._broker is not None:
            answers = self._outside.answers or answers_of(self._broker)
            self.durable = DurableGateway(self._broker, answers, clock=clock, tracing=self._outside.tracing)
        self._around = Surroundings(
            clock,
            Alarms(clock),
            self._outside.random or Random(),  # noqa: S311 - jitter, not secrets
            self._outside.sink or NobodyListens(),
            self._outside.tracing,
        )
        self._transport = self._outside.transport or default_transport()
        self._journal = None if self._log_dir is None else Journal(self._log_dir)
        if self._dlq is None and self.durable is None:
            log.warning("the gateway has no dead letter queue: requests that are given up end as errors only")
        letters = None if self._dlq is None else LetterWriter(self._dlq, self._around)
        for name, config in self.models.items():
            account = self._accounts[name] = Account(name, self._around, self._journal)
            exchange = Exchange(config, key=self._keys.get(name, ""), transport=self._transport, clock=clock)
            desks = Desks(self._router, account, exchange, letters)
            self._lines[name] = Line(config, self.policy, desks=desks, around=self._around)
        self._reception = Reception(self._lines, self._router, self._around)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def ask(self, request: LLMRequest, *, keep: bool = True) -> LLMResponse:
        """The answer to a request. Raises the `GatewayError` that it ends in. Cancelling it calls the request off.

        In a durable gateway it goes on then, unless it was asked without `keep`: not to be persisted.
        """
        return await (await self.submit(request, keep=keep))

    async def submit(self, request: LLMRequest, *, wait: bool = True, keep: bool = True) -> Pending:
        """Accept a request; return the future of its answer. Cancelling the future calls the request off.

        A durable gateway persists it first, if it is to `keep` it; then cancelling ends the waiting only.

        While the model's queue is full it waits, as long as the request's deadline allows; without `wait` it raises
        `GatewayBusy`. The same request again, with the same id, joins the one that is under way. Raises
        `RequestRejected` for one that can never be sent, `RequestIdConflict` for another one with the same id,
        `GatewayClosed`, and `DeadlineExceeded`.
        """
        line = self._line(request)
        ask = self._reception.asked(line, request)
        if self.durable is not None and keep:
            self.durable.refuse_other(request)
            timed = self._timed(request)
            await self.durable.submit(timed)
            return self.durable.want(timed)
        return self._reception.join(ask) or await self._reception.accept(line, ask, wait=wait)

    async def attempt(self, request: LLMRequest, *, failures: int = 0, limited: bool = False) -> LLMResponse:
        """The answer, of one attempt that is neither retried nor a letter: a durable gateway's worker sees to that.

        After `failures` it is a retry, and waits for the retry allowance, unless the last one was a rate limit.
        """
        line = self._line(request)
        held = failures > 0 and not limited
        ask = self._reception.asked(line, request)._replace(once=True, failures=failures, held=held)
        return await (self._reception.join(ask) or await self._reception.accept(line, ask))

    async def result(self, request_id: str, *, within: Duration = "10m") -> LLMResponse:
        """The answer to a request of a durable gateway, from any process; it is kept for 24 hours.

        Raises `TimeoutError` if there is none yet, `ConfigError` without a broker.
        """
        if self.durable is None:
            raise ConfigError("broker: a gateway without one keeps no answers")
        return await self.durable.result(request_id, within=within)

    def hear(self, event: Event) -> None:
        """Hear what the workers of a durable gateway tell: for its journal, and for those who wait here."""
        if self.durable is None:
            return
        self.durable.hear(event)
        model = self.models.get(event.queue.removeprefix(queue_of("")))
        if model is not None:
            failures = self.durable.take_failure  # also where there is no journal: what was told is forgotten
            for file, row in rows_of(event, postpone_after=model.postpone_after, take_failure=failures):
                if self._journal is not None:
                    self._journal.write(file, row)

    @asynccontextmanager
    async def stream(self, request: LLMRequest) -> AsyncIterator[AnswerStream]:
        """The answer as it comes, in a context that calls the request off when it is left before the end.

        The request is retried only before its first words; an answer that breaks off later is `StreamInterrupted`,
        never a success. `attempt_timeout` is then the longest silence. Nothing is persisted. Raises what `submit` does.
        """
        line = self._line(request)
        channel = Channel()
        ask = self._reception.asked(line, request, stream=True)._replace(channel=channel)
        self._reception.refuse_known(request)
        async with AnswerStream(await self._reception.accept(line, ask), channel) as stream:
            yield stream

    async def submit_many(self, requests: Sequence[LLMRequest]) -> Sequence[Pending]:
        """Accept requests; return their futures, in order. The future of one that is refused has the error in it.

        Who is cancelled here calls off what was accepted, unless it was persisted.
        """
        if self.durable is None:
            return await self._submitted_all(requests)
        asked: dict[str, str] = {}
        timed = [self._timed(request) for request in requests]
        ended = [self._refusal(request, asked, self.durable) for request in timed]
        pairs = [*zip(timed, ended, strict=True)]
        await self.durable.submit_many([request for request, future in pairs if future is None])
        return [self.durable.want(request) if future is None else future for request, future in pairs]

    def cancel(self, request_id: str) -> bool:
        """Cancel the futures of a request, for all who wait for it; False if nobody in this process does.

        That calls it off, unless it was persisted: then it goes on, and `call_off` is the way to end it.
        """
        waited = self.durable is not None and self.durable.cancel(request_id)
        attempt = any(line.tickets[request_id].once for line in self._lines.values() if request_id in line.tickets)
        return waited if attempt else self._router.cancel(request_id) or waited

    def withdraw(self, request_id: str) -> None:
        """End a request as `GatewayClosed` if it is not in flight: whoever has asked is about to go."""
        for line in self._lines.values():
            line.withdraw(request_id)

    async def call_off(self, request_id: str) -> None:
        """Call a request off, also one that was persisted, wherever it is: it is neither sent later, nor a letter."""
        if self.durable is not None:
            await self.durable.call_off(request_id)
        self._router.cancel(request_id)  # also the attempt of a worker, which finds out why

    async def drain(self) -> None:
        """Wait until nobody waits here, and nothing is under way. What is submitted meanwhile is waited for, too."""
        while pending := [*self._router.pending(), *(self.durable.pending() if self.durable is not None else ())]:
            await asyncio.wait(pending)

    def stats(self) -> dict[str, ModelStats]:
        """How things stand, by model."""
        if not self._lines:
            return {}
        dropped, now = 0 if self._journal is None else self._journal.dropped, self._around.clock.now()
        return {
            name: stats_of(line, self._accounts[name], dropped=dropped, now=now) for name, line in self._lines.items()
        }

    @property
    def sink(self) -> EventSink | None:
        """Who is told of its events, if anybody is."""
        return self._outside.sink

    def wire_of(self, model: str) -> str | None:
        """The form in which a model is spoken to; None if there is none of this name."""
        config = self.models.get(model)
        return None if config is None else config.wire

    async def aclose(self) -> None:
        """Close. Every future that is left ends as `GatewayClosed`. Idempotent."""
        if self._closed or not self._opened:
            self._closed = True
            return
        self._closed = True
        self._reception.close()
        async with AsyncExitStack() as last:  # all of it happens, also to one who is cancelled here
            if self._journal is not None:
                last.push_async_callback(self._journal.aclose)
            if self._outside.transport is None:
                last.push_async_callback(self._transport.aclose)
            last.push_async_callback(self._around.alarms.aclose)
            if self.durable is not None:
                if self._outside.answers is None:
                    last.push_async_callback(self.durable.answers.aclose)
                last.push_async_callback(self.durable.aclose)
            last.callback(self._router.close, lambda _: GatewayClosed("the gateway was closed before the letter was"))
            for line in self._lines.values():
                line.stop()
            for line in self._lines.values():
                await line.settle()

    def _line(self, request: LLMRequest) -> Line:
        if not self._opened:
            raise named(GatewayClosed("the gateway is not open"), request)
        return self._reception.line_of(request)

    def _timed(self, request: LLMRequest) -> LLMRequest:
        """The request with its model's deadline, if it has none: so that worker and caller end it at the same time."""
        config = self.models.get(request.model)
        if request.deadline is not None or config is None or config.deadline is None:
            return request
        return request.within(config.deadline)

    async def _submitted_all(self, requests: Sequence[LLMRequest]) -> Sequence[Pending]:
        futures: list[Pending] = []
        try:
            for request in requests:
                futures.append(await self._submitted(request))  # noqa: PERF401 - what was accepted is to be known
        except asyncio.CancelledError:
            for future in futures:
                future.cancel()
            raise
        return futures

    async def _submitted(self, request: LLMRequest) -> Pending:
        try:
            return await self.submit(request)
        except GatewayError as error:
            return refused(error)

    def _refusal(self, request: LLMRequest, asked: dict[str, str], durable: DurableGateway) -> Pending | None:
        """The future of a request that is not accepted; None for any other, which is added to what is `asked`."""
        try:
            self._reception.asked(self._line(request), request)
            durable.refuse_other(request)
            if asked.setdefault(request.request_id, request.fingerprint) != request.fingerprint:
                raise named(RequestIdConflict("another of these requests has this id"), request)
        except GatewayError as error:
            return refused(error)
        return None

    def _abandon(self, request_id: str) -> None:
        for line in self._lines.values():
            line.abandon(request_id)
