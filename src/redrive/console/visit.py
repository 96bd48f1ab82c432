"""A visit: one request to the console, by somebody who is known; and how a page or an act is declared.

@page("/incidents", "incidents")
async def incidents(visit: Visit) -> Response: ...

@act("/incidents/{incident_id}/mute", "mute", may="mute")
async def mute(visit: Visit) -> Response: ...
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from redrive.console import render, session
from redrive.console.origin import demand_own_page
from redrive.door.guard import recognised
from redrive.service import Service
from redrive.triage.access import Caller
from redrive.triage.desk import Desk

SAID = "redrive-said"
_MOST_FIELDS = 2000


class SignInNeeded(Exception):
    """Nobody is known to have sent this request."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Who is here, what they ask, and the desk at which it is done. `form` is what an act was sent with."""

    request: Request
    caller: Caller
    form: ImmutableMultiDict[str, str]

    @property
    def service(self) -> Service:
        """What pages are made from."""
        found: Service = self.request.app.state.service
        return found

    @property
    def desk(self) -> Desk:
        """A desk in the visitor's name."""
        return self.service.desk(self.caller.name)

    @property
    def now(self) -> datetime:
        """The service's time."""
        return self.service.clock.now()

    def part(self, name: str) -> str:
        """A part of the address, as in `/letters/{letter_id}`."""
        return unquote(self.request.path_params[name])

    def url(self, name: str, /, query: Mapping[str, Any] | None = None, **parts: str) -> str:
        """The address of a page."""
        return render.url(self.request, name, query, **parts)

    def render(self, template: str, *, status: int = HTTPStatus.OK, **facts: Any) -> Response:
        """A page for this visitor, with what was said about their last act, once."""
        said = unquote(self.request.cookies.get(SAID, ""))
        given = {**facts, **standing(self.request, self.caller), "said": said}
        response = render.render(self.request, template, given, now=self.now, status=status)
        if said and render.FRAGMENT not in self.request.headers:
            response.delete_cookie(SAID, path=self._path, httponly=True, samesite="strict")
        return response

    def go(self, address: str, *, said: str = "") -> Response:
        """On to another page, which says what was done."""
        response = RedirectResponse(address, HTTPStatus.SEE_OTHER)
        if said:
            response.set_cookie(SAID, quote(said), max_age=60, path=self._path, httponly=True, samesite="strict")
        return response

    @property
    def _path(self) -> str:
        return f"{self.request.scope.get('root_path', '')}/"


Show = Callable[[Visit], Awaitable[Response]]


def page(path: str, name: str, *, may: str = "read") -> Callable[[Show], Route]:
    """Declare a page, and the permission that it needs."""

    def declare(show: Show) -> Route:
        async def answer(request: Request) -> Response:
            return await show(await _visit(request, may))

        return Route(path, answer, methods=["GET"], name=name)

    return declare


def act(path: str, name: str, *, may: str) -> Callable[[Show], Route]:
    """Declare an act, which is a form that is sent; who it is by, and from where, is known before it is read."""

    def declare(do: Show) -> Route:
        async def answer(request: Request) -> Response:
            demand_own_page(request)
            visit = await _visit(request, may)
            return await do(Visit(request, visit.caller, await form_of(request)))

        return Route(path, answer, methods=["POST"], name=name)

    return declare


async def caller_of(request: Request) -> Caller | None:
    """Who sent a request, found out once; None if nobody is known to. Raises `StoreUnavailable`."""
    if not hasattr(request.state, "caller"):
        secret = session.secret_in(request)
        found = None if secret is None else await recognised(request.app.state.service, secret)
        request.state.caller = found or request.app.state.guard.stranger()
        request.state.is_stranger = found is None  # whatever they brought along is no name to count them by
    known: Caller | None = request.state.caller
    return known


async def form_of(request: Request) -> ImmutableMultiDict[str, str]:
    """The fields of a form. Raises `HTTPException` 400 for what is none."""
    try:
        text = (await request.body()).decode()
        return ImmutableMultiDict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"))
    except ValueError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"this is no form that can be read: {error}") from error


def standing(request: Request, caller: Caller) -> dict[str, Any]:
    """What every page says about its visitor."""
    return {"caller": caller, "may": caller.may, "guarded": request.app.state.guard.needs_token}


async def _visit(request: Request, may: str) -> Visit:
    caller = await caller_of(request)
    if caller is None:
        raise SignInNeeded
    caller.demand(may)
    return Visit(request, caller, ImmutableMultiDict())
