"""The console as an ASGI app: every page under one roof, and what a visitor sees where there is none."""

import logging
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from redrive.console import render
from redrive.console.pages import ROUTES
from redrive.console.visit import SignInNeeded, standing
from redrive.core.errors import ConfigError, RedriveError, StoreUnavailable
from redrive.core.printable import printable
from redrive.door.guard import Guard
from redrive.door.headers import SECURITY
from redrive.door.middleware import middleware
from redrive.door.problems import RETRY_AFTER, next_step, shown, status_of
from redrive.service import Service

log = logging.getLogger(__name__)


class _Assets(StaticFiles):
    """Files that a browser may keep: their address changes when they do."""

    def file_response(self, *args: object, **options: object) -> Response:
        response = super().file_response(*args, **options)  # type: ignore[arg-type] # handed on as it is
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def asgi(service: Service, *, guard: Guard) -> Starlette:
    """The console over a service, to be served or mounted anywhere. Opens nothing: its owner opens the service.

    Visitors sign in with a token; with a guard that asks for none, whoever is on this machine is the admin `local`.
    """
    app = Starlette(
        routes=[*ROUTES, Mount("/static", _Assets(packages=[("redrive.console", "static")]), name="static")],
        middleware=middleware(service, guard),
        exception_handlers={
            SignInNeeded: _ask_to_sign_in,
            RedriveError: _on_ours,
            HTTPException: _on_http,
            Exception: _on_surprise,
        },
    )
    app.router.redirect_slashes = False
    app.state.service = service
    app.state.guard = guard
    app.state.patterns = {route.name: route.path_format for route in ROUTES} | {"static": "/static/{path}"}
    return app


async def _ask_to_sign_in(request: Request, _: Exception) -> Response:
    if render.FRAGMENT in request.headers or request.method != "GET":
        return _trouble(request, HTTPStatus.UNAUTHORIZED, ["You are signed out. Sign in, and try again."])
    # Quoted again: a server has decoded the path once, and would once more on the way back.
    back = quote(request.scope["path"]) + (f"?{request.url.query}" if request.url.query else "")
    sign_in = render.url(request, "sign_in", {"next": back})
    return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": sign_in})


async def _on_ours(request: Request, error: Exception) -> Response:
    if not isinstance(error, RedriveError):
        raise error
    status = status_of(error)
    if status is HTTPStatus.UNPROCESSABLE_ENTITY and request.method == "GET":
        status = status_of(StoreUnavailable())  # nothing was to be kept: it is not the visitor who is at fault
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        return await _on_surprise(request, error)
    mistakes = error.mistakes if isinstance(error, ConfigError) else [str(error)]
    return _trouble(request, status, mistakes)


async def _on_http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    said = "There is no such page." if error.status_code == HTTPStatus.NOT_FOUND else str(error.detail)
    return _trouble(request, error.status_code, [said])


async def _on_surprise(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, printable(request.url.path), exc_info=error)
    said = "This is a mistake of the service; its log says more."
    response = _trouble(request, HTTPStatus.INTERNAL_SERVER_ERROR, [said])
    for name, value in SECURITY.items():  # made outside of the layer that adds these to every other answer
        response.headers.setdefault(name, value)
    return response


def _trouble(request: Request, status: int, said: list[str] | tuple[str, ...]) -> Response:
    found = HTTPStatus(status)
    mistakes = [*map(shown, said)]
    if render.FRAGMENT in request.headers:
        return Response("; ".join(mistakes), found, media_type="text/plain")
    facts: dict[str, Any] = {
        "title": found.phrase,
        "status": found.value,
        "mistakes": mistakes,
        "advice": next_step(found, method=request.method),
    }
    service: Service = request.app.state.service
    if caller := getattr(request.state, "caller", None):
        facts |= standing(request, caller)
    response = render.render(request, "trouble.html", facts, now=service.clock.now(), status=found)
    if found is HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = RETRY_AFTER
    return response
