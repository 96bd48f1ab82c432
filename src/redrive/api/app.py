"""The app: every route under one roof, what holds for all of them, and the document that describes them."""

from http import HTTPStatus
from importlib import metadata
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.routing import compile_path

from redrive.api.problems import PROBLEM_REF, PROBLEM_SCHEMA, answer_with_problems
from redrive.api.routes import (
    alerts,
    analytics,
    audit,
    clearing,
    dlq,
    events,
    incidents,
    letters,
    queues,
    redrives,
    root,
    tokens,
    transfer,
)
from redrive.core.wire.plain import dump
from redrive.door.audience import Audience
from redrive.door.guard import Guard
from redrive.door.middleware import middleware
from redrive.door.problems import problem
from redrive.service import Service

PREFIX = "/api/v1"
ROUTERS = [
    *(dlq.router, letters.router, clearing.router, incidents.router, redrives.router, queues.router),
    *(analytics.router, audit.router, events.router, transfer.router, tokens.router, alerts.router),
]
_PROBLEM = {"content": {"application/problem+json": {"schema": PROBLEM_REF}}}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The request cannot be carried out; the problem says why.", **_PROBLEM},
    "503": {
        "description": "The store or a broker is away, or slow; ask again after the time that Retry-After says.",
        **_PROBLEM,
    },
}


class Json(JSONResponse):
    """JSON that can be written whatever a letter holds, also what UTF-8 cannot say."""

    def render(self, content: Any) -> bytes:
        return dump(content)


ROOMS = ("/api", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics")
"""What the paths of the API begin with: all others are free for somebody else."""


def create_app(service: Service, *, guard: Guard, audience: Audience | None = None) -> FastAPI:
    """The API over a service. Opens nothing: the service is opened and closed by whoever made it."""
    app = FastAPI(
        title="Redrive",
        summary="Dead letters: look at them, understand them, send them back safely.",
        version=metadata.version("redrive"),
        docs_url=None,
        redoc_url=None,
        default_response_class=Json,
        redirect_slashes=False,
        responses=_PROBLEMS,
        middleware=middleware(service, guard),
    )
    app.state.service = service
    app.state.guard = guard
    app.state.audience = audience or Audience()
    answer_with_problems(app)
    app.include_router(root.router)
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX)
    _name_methods(app)
    _document(app, guard)
    return app


def _name_methods(app: FastAPI) -> None:
    """Let a 405 name every method that a path has: the framework names those of the first route it finds.

    A path that is written out, such as /letters/discard, is no letter's id.
    """
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    known = [(compile_path(f"{PREFIX}{route.path}")[0], route.methods or ()) for route in routes]

    async def not_allowed(request: Request, error: Exception) -> Response:
        asked = request.scope["path"]
        exactly = {name for route in routes if f"{PREFIX}{route.path}" == asked for name in route.methods or ()}
        roughly = {name for path, methods in known if path.match(asked) for name in methods}
        named = (getattr(error, "headers", None) or {}).get("Allow", "").split(", ")
        allow = ", ".join(sorted(exactly or roughly or named))
        detail = f"{request.method} is not allowed here, but: {allow}"
        return problem(HTTPStatus.METHOD_NOT_ALLOWED, detail, headers={"Allow": allow})

    app.add_exception_handler(HTTPStatus.METHOD_NOT_ALLOWED, not_allowed)


def _document(app: FastAPI, guard: Guard) -> None:
    """Let the OpenAPI document say what a problem looks like, and which operations need a token."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, summary=app.summary, version=app.version, routes=app.routes)
            components = made.setdefault("components", {})
            components.setdefault("schemas", {})["Problem"] = dict(PROBLEM_SCHEMA)
            if guard.needs_token:
                components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                for operation in operations_of(made):
                    if "x-permission" in operation:
                        operation["security"] = [{"token": []}]
            app.openapi_schema = made
        return app.openapi_schema

    # As FastAPI's own documentation has it.
    app.openapi = document  # type: ignore[method-assign]


def operations_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Every operation of an OpenAPI document."""
    return [operation for path in document["paths"].values() for operation in path.values()]
