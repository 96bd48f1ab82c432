"""Taking requests in: to their model's line, beside the same request if it is under way, as soon as there is room."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import partial

from redrive.core.errors import (
    DeadlineExceeded,
    GatewayBusy,
    GatewayClosed,
    GatewayError,
    RequestIdConflict,
    RequestRejected,
)
from redrive.gateway.line import Line
from redrive.gateway.request import LLMRequest
from redrive.gateway.router import Pending, ResponseRouter
from redrive.gateway.surroundings import Surroundings
from redrive.gateway.ticket import Ask, Ticket, queue_of


class Reception:
    """Where the requests of a gateway come in. Belongs to one event loop."""

    def __init__(self, lines: Mapping[str, Line], router: ResponseRouter, around: Surroundings) -> None:
        self._lines = lines
        self._router = router
        self._around = around
        self._closed = False

    def close(self) -> None:
        """Take nothing in any more."""
        self._closed = True

    def line_of(self, request: LLMRequest) -> Line:
        """The line of its model."""
        if self._closed:
            raise named(GatewayClosed("the gateway is not open"), request)
        line = self._lines.get(request.model)
        if line is None:
            known = ", ".join(sorted(self._lines))
            raise named(RequestRejected(f"model: expected one of {known}, got {request.model!r}"), request)
        return line

    @staticmethod
    def asked(line: Line, request: LLMRequest, *, stream: bool = False) -> Ask:
        """The request as it will be sent. Raises `RequestRejected` for one that can never be."""
        try:
            return line.asked(request, stream=stream)
        except RequestRejected as error:
            raise named(error, request) from None

    def _known(self, request: LLMRequest) -> Ticket | None:
        for line in self._lines.values():
            if (ticket := line.tickets.get(request.request_id)) is not None:
                return ticket
        return None

    def join(self, ask: Ask) -> Pending | None:
        """One more future for the same request; None if none with this id is under way. Words are handed out once."""
        ticket = self._known(ask.request)
        if ticket is None:
            return None
        if ask.channel is not None or ticket.body != ask.body or ticket.request.model != ask.request.model:
            self.refuse_known(ask.request)
        return self._router.register(ask.request.request_id)

    def refuse_known(self, request: LLMRequest) -> None:
        """Raise if a request with this id is under way."""
        if self._known(request) is not None:
            raise named(RequestIdConflict("another request with this id is under way"), request)

    async def accept(self, line: Line, ask: Ask, *, wait: bool = True) -> Pending:
        """Take a request in, as soon as there is room."""
        request = ask.request
        made_at = now = self._around.clock.now()
        allowed = request.deadline or (None if ask.once else line.config.deadline)
        deadline_at = None if allowed is None else made_at + allowed
        if not line.room.take():
            if not wait:
                raise named(GatewayBusy(f"the queue of {request.model} is full"), request)
            await self._room(line, request, deadline_at)
            now = self._around.clock.now()
            try:
                self.line_of(request)
                joined = self.join(ask)  # meanwhile somebody else may have asked the same
            except GatewayError:
                line.room.release()
                raise
            if joined is not None:
                line.room.release()
                return joined
        future = self._router.register(request.request_id)
        line.accept(self._traced(ask).ticket(now=made_at, deadline_at=deadline_at), now=now, held=ask.held)
        return future

    def _traced(self, ask: Ask) -> Ask:
        """With the trace that its attempts belong to. Those of a worker have one already."""
        if self._around.tracing is None or ask.once:
            return ask
        with self._around.tracing.publish(queue_of(ask.request.model), ()) as trace:
            return ask._replace(trace=trace)

    async def _room(self, line: Line, request: LLMRequest, deadline_at: datetime | None) -> None:
        """Wait for a place in the queue."""
        place = line.room.wait()
        late = DeadlineExceeded("the deadline passed before there was room in the queue")
        alarm = None if deadline_at is None else self._around.alarms.at(deadline_at, partial(_end, place, late))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                line.room.release()  # it was there in the very moment in which nobody wanted it any more
            raise
        except DeadlineExceeded:
            raise named(late, request) from None
        finally:
            self._around.alarms.call_off(alarm)


def _end(place: "asyncio.Future[None]", error: GatewayError) -> None:
    if not place.done():
        place.set_exception(error)


def named(error: GatewayError, request: LLMRequest) -> GatewayError:
    """The error, with the request that it is about."""
    error.request_id, error.model = request.request_id, request.model
    return error
