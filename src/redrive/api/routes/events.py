"""Events over HTTP, as they happen: letters that arrive or come back, and redrives that change (server-sent events).

The id of an event is a cursor: who comes back with it as `Last-Event-ID` misses no letter, and may be told of a few
twice. A stream ends when its caller may no longer read, and after some minutes in any case; browsers come back by
themselves.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, HTTPException, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import TypeAdapter

from redrive.api.auth import CallerOf, PermittedRoute, ServiceOf, allowed, guard_of, service_of
from redrive.api.pages import asked
from redrive.api.schema import LetterLine, line_of
from redrive.core.errors import StoreUnavailable
from redrive.core.ports.store import Store
from redrive.core.redrive import ENDED, Redrive
from redrive.core.stored import LetterRow, Page
from redrive.core.wire.plain import dump
from redrive.door.audience import audience_of
from redrive.door.filters import NO_NUL
from redrive.triage.access import Caller
from redrive.triage.desk import Desk
from redrive.triage.masking import masked_operation, masked_row

router = APIRouter(prefix="/events", tags=["events"], route_class=PermittedRoute)

POLL = timedelta(seconds=1)
LONGEST = timedelta(minutes=10)
COME_BACK = 2000  # milliseconds
PAGE = 100
REDRIVES = 20  # the latest ones: those that anybody watches

_LINE = TypeAdapter(LetterLine)

LastEventId = Annotated[
    str | None,
    Header(max_length=1024, pattern=NO_NUL, description="Go on behind this event; without, from now on."),
]


async def a_seat(request: Request) -> AsyncIterator[None]:
    """A place in the audience. Raises `HTTPException` 503 if there is none."""
    with audience_of(request.app).seat() as found:
        if not found:
            raise HTTPException(
                HTTPStatus.SERVICE_UNAVAILABLE, "as many listen as this service allows", {"Retry-After": "30"}
            )
        yield


class Start(NamedTuple):
    """Where a stream begins, and the first page behind it."""

    cursor: str | None
    page: Page[LetterRow]


async def start_of(desk: Annotated[Desk, Depends(allowed("read"))], last_event_id: LastEventId = None) -> Start:
    """Where the stream begins: found before it does, so that a mistake is answered as one."""
    page = await asked(desk.store.news(after=last_event_id or None, limit=PAGE))
    return Start(last_event_id or page.after, page)


@router.get("", response_class=EventSourceResponse, dependencies=[Depends(a_seat)])
async def events(
    request: Request,
    service: ServiceOf,
    start: Annotated[Start, Depends(start_of)],
    _: Annotated[Desk, Depends(allowed("read"))],
    caller: CallerOf,
) -> AsyncIterator[ServerSentEvent]:
    """What happens, as it does: `letter` (arrived or reopened) and `redrive` (begun or changed), as JSON.

    No event has a payload. The first is `ready`. While nothing happens there is a comment every 15 seconds.
    """
    audience, clock, page = audience_of(request.app), service.clock, start.page
    until = clock.now() + LONGEST
    redrives = Changes(caller)
    yield ServerSentEvent(event="ready", id=start.cursor, retry=COME_BACK, raw_data="{}")
    while True:
        for event in letters_in(page):
            yield event
        for event in await redrives.since_last(service.store):
            yield event
        if len(page.rows) < PAGE:
            await audience.rest(POLL, clock=clock)
        if audience.closed or clock.now() >= until or not await _may_listen(request):
            return
        page = await _next(service.store, page)


async def _may_listen(request: Request) -> bool:
    """Whether the caller may still read: asked before each look, so that a revoked token hears nothing more."""
    try:
        return (await guard_of(request).caller(request, service_of(request))).may("read")
    except HTTPException:
        return False
    except StoreUnavailable:  # then there is nothing to tell either
        return True


async def _next(store: Store, page: Page[LetterRow]) -> Page[LetterRow]:
    try:
        return await store.news(after=page.after, limit=PAGE)
    except StoreUnavailable:  # asked again; what happens meanwhile is behind the cursor
        return Page((), page.after)


def letters_in(page: Page[LetterRow]) -> list[ServerSentEvent]:
    """An event for each letter. The last has the cursor: who breaks off before it hears the others again."""
    found = [_event("letter", _LINE.dump_python(line_of(masked_row(row)), mode="json")) for row in page.rows]
    if found:
        found[-1].id = page.after
    return found


class Changes:
    """Redrives as a caller may see them. At first those that have not ended are news, then whatever changes."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._known: dict[str, tuple[str, str]] | None = None

    async def since_last(self, store: Store) -> list[ServerSentEvent]:
        """An event for each redrive that has changed since the last call."""
        try:
            latest = (await store.redrives(limit=REDRIVES)).rows
        except StoreUnavailable:
            return []
        now = {one.redrive_id: (one.state.value, one.why) for one in latest}
        known = self._known
        self._known = now
        if known is None:
            news = [one for one in latest if one.state not in ENDED]
        else:
            news = [one for one in latest if known.get(one.redrive_id) != now[one.redrive_id]]
        return [_event("redrive", _facts(masked_operation(one, self._caller))) for one in news]


def _facts(redrive: Redrive) -> dict[str, Any]:
    names = ("redrive_id", "by", "selection", "total", "state", "why")
    return {name: getattr(redrive, name) for name in names}


def _event(name: str, facts: dict[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(event=name, raw_data=dump(facts).decode())
