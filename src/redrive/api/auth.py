"""Who is calling, and whether they may: decided before a request's body is read.

A route says what it needs once, by what it depends on, and the OpenAPI document says so too (`x-permission`):

    router = APIRouter(prefix="/letters", route_class=PermittedRoute)

    @router.post("/{letter_id}/note")
    async def note(letter_id: str, desk: Annotated[Desk, Depends(allowed("note"))]) -> Noted: ...
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache
from typing import Annotated, Any, get_origin

from fastapi import Depends, Request, Response, params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_flat_params, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from redrive.door.guard import Guard
from redrive.service import Service
from redrive.triage.access import RIGHTS, Caller
from redrive.triage.desk import Desk


async def caller_of(request: Request) -> Caller:
    """Who is calling, found out once per request."""
    if not hasattr(request.state, "caller"):
        request.state.caller = await guard_of(request).caller(request, service_of(request))
    found: Caller = request.state.caller
    return found


def guard_of(request: Request) -> Guard:
    """Who stands at the door."""
    found: Guard = request.app.state.guard
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
