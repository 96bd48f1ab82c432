"""Who is calling, and whether they may: decided before a request's body is read.

A route says what it needs once, by what it depends on, and the OpenAPI document says so too (`x-permission`):

    router = APIRouter(prefix="/letters", route_class=PermittedRoute)

    @router.post("/{letter_id}/note")
    async def note(letter_id: str, desk: Annotated[Desk, Depends(allowed("note"))]) -> Noted: ...
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import Annotated, Any, get_origin
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request, Response, params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_flat_params, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from redrive.api.problems import problem
from redrive.core.errors import StoreError, StoreUnavailable
from redrive.service import Service
from redrive.triage.access import LOCAL, RIGHTS, Caller, recognise
from redrive.triage.desk import Desk

BEARER = "bearer "
NOT_RECOGNISED = "this needs a token that is valid: Authorization: Bearer rdt_…"


@dataclass(frozen=True, slots=True)
class Guard:
    """How callers are told apart. Without `needs_token` one without a token is `local`, an admin: only on loopback.

    A token that is given must be valid all the same.
    """

    needs_token: bool

    async def caller(self, request: Request) -> Caller:
        """Who is calling. Raises `HTTPException` 401, and `StoreUnavailable`."""
        given = request.headers.getlist("authorization")
        if not given and not self.needs_token:
            return LOCAL
        if len(given) == 1 and given[0].lower().startswith(BEARER):
            caller = await _recognised(service_of(request), given[0][len(BEARER) :].strip())
            if caller is not None:
                return caller
        raise HTTPException(HTTPStatus.UNAUTHORIZED, NOT_RECOGNISED, {"WWW-Authenticate": 'Bearer realm="redrive"'})


async def _recognised(service: Service, secret: str) -> Caller | None:
    try:
        return await recognise(service.store, secret, service.clock.now())
    except StoreError as error:
        # Without what it says: whoever asks has not shown yet that they may know where the store is.
        raise StoreUnavailable("the store, which knows the tokens, does not answer") from error


async def caller_of(request: Request) -> Caller:
    """Who is calling, found out once per request."""
    if not hasattr(request.state, "caller"):
        request.state.caller = await request.app.state.guard.caller(request)
    found: Caller = request.state.caller
    return found


def service_of(request: Request) -> Service:
    """What requests are answered from."""
    found: Service = request.app.state.service
    return found


CallerOf = Annotated[Caller, Depends(caller_of)]
ServiceOf = Annotated[Service, Depends(service_of)]


@cache
def allowed(permission: str) -> Callable[[Request], Awaitable[Desk]]:
    """What a route depends on to be given the desk of its caller, if the caller's role has the permission."""
    if permission not in RIGHTS:
        raise KeyError(permission)

    async def desk(request: Request) -> Desk:
        caller = await caller_of(request)
        caller.demand(permission)
        return service_of(request).desk(caller.name)

    _PERMISSIONS[desk] = permission
    return desk


_PERMISSIONS: dict[Callable[..., Any], str] = {}


class PermittedRoute(APIRoute):
    """A route that asks for the permission, and refuses strange parameters, before it reads a body.

    One that depends on no `allowed(…)`, or on several, cannot be made.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.openapi_extra = {**(self.openapi_extra or {}), "x-permission": _PERMISSIONS[self._asks]}

    @property
    def _asks(self) -> Callable[[Request], Awaitable[Desk]]:
        (found,) = [one.call for one in self.dependant.dependencies if one.call in _PERMISSIONS]
        return found

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, ask, known = super().get_route_handler(), self._asks, _parameters(self.dependant)

        async def handle_if_permitted(request: Request) -> Response:
            await ask(request)
            if strange := _strange(request, known):
                _, others = request_params_to_args(self.dependant.query_params, request.query_params)
                mistakes = {("query", name): said for name, said in strange.items()}
                mistakes |= {loc: one["msg"] for one in others if (loc := tuple(one["loc"])) not in mistakes}
                raise RequestValidationError([{"loc": loc, "msg": said} for loc, said in mistakes.items()])
            return await handle(request)

        return handle_if_permitted


def _parameters(dependant: Dependant) -> dict[str, bool]:
    """The names that a query may have, and whether each may stand there more than once."""
    elsewhere = (params.Path, params.Header, params.Cookie)
    fields = [field for field in get_flat_params(dependant) if not isinstance(field.field_info, elsewhere)]
    return {field.alias: get_origin(field.field_info.annotation) is list for field in fields}


def _strange(request: Request, known: dict[str, bool]) -> dict[str, str]:
    """Names that are not known, or that stand twice, and that: neither may quietly widen what is asked for."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    twice = {name: "stands more than once" for name, number in given.items() if number > 1 and not known.get(name)}
    return {**twice, **{name: "is not known here" for name in given if name not in known}}


class LoopbackOnly:
    """Answers 403 to what a page of somebody else may have sent: for a service that takes callers without a token.

    A page may make a browser ask 127.0.0.1, under any name that resolves to it. It can hide neither that name nor
    where it is from.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (why := _foreign(Headers(scope=scope))):
            await problem(HTTPStatus.FORBIDDEN, why)(scope, receive, send)
            return
        await self._app(scope, receive, send)


_OF_A_PROXY = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def _foreign(headers: Headers) -> str | None:
    """Why a request may be somebody else's; None if it is not."""
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or not _is_loopback(hosts[0]):
        return "without tokens this service answers only to localhost, 127.0.0.1 and [::1]"
    ours = {f"{scheme}://{hosts[0].lower()}" for scheme in ("http", "https")}
    if any(origin.lower() not in ours for origin in origins):
        return "the request comes from another origin"
    if any(site not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")):
        return "the request comes from another site"
    if any(name in headers for name in _OF_A_PROXY):
        return "the request comes through a proxy: whoever stands behind it needs a token"
    return None


def _is_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
