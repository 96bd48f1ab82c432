"""What went wrong, as the API says it: every error of an app becomes a problem."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from redrive.core.errors import ConfigError, RedriveError, StoreError, StoreUnavailable
from redrive.core.printable import printable
from redrive.door.headers import SECURITY
from redrive.door.problems import RETRY_AFTER, Problem, problem, status_of

log = logging.getLogger(__name__)

PROBLEM_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "description": "Every mistake, where there may be several.",
            "items": {
                "type": "object",
                "required": ["at", "detail"],
                "properties": {"at": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
PROBLEM_REF = {"$ref": "#/components/schemas/Problem"}


class BadRequest(HTTPException):
    """A request that makes no sense, for a reason that only a route knows."""

    def __init__(self, detail: str) -> None:
        super().__init__(HTTPStatus.BAD_REQUEST, detail)


def problem_of(error: RedriveError) -> Problem:
    """The answer for an error of ours."""
    status = status_of(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        raise error
    mistakes = error.mistakes if isinstance(error, ConfigError) else ()
    errors = [dict(zip(("at", "detail"), _located(mistake), strict=True)) for mistake in mistakes]
    headers = {"Retry-After": RETRY_AFTER} if status is HTTPStatus.SERVICE_UNAVAILABLE else None
    return problem(status, "; ".join(mistakes) or str(error), errors=errors, headers=headers)


def answer_with_problems(app: FastAPI) -> None:
    """Let every error of an app be answered as a problem."""
    app.add_exception_handler(RedriveError, _on_ours)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(StarletteHTTPException, _on_http)
    app.add_exception_handler(Exception, _on_surprise)


async def _on_ours(request: Request, error: Exception) -> Problem:
    if not isinstance(error, RedriveError):
        raise error
    if type(error) is StoreError and request.method == "GET":
        error = StoreUnavailable(str(error))  # nothing was to be kept: it is not the request that is at fault
    return problem_of(error)


async def _on_invalid(request: Request, error: Exception) -> Problem:
    if not isinstance(error, RequestValidationError):
        raise error
    # Without what was sent: it may hold secrets, be huge, or not be sayable in JSON.
    untyped = not _is_json(request.headers.get("content-type", ""))
    errors = [
        {"at": ".".join(map(str, one["loc"])), "detail": _NOT_JSON if untyped and _is_unread(one) else str(one["msg"])}
        for one in error.errors()
    ]
    detail = "; ".join(f"{one['at']}: {one['detail']}" for one in errors[:_TOLD])
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors=errors[:_LISTED])


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _is_unread(error: Mapping[str, Any]) -> bool:
    """Whether a mistake is that the body as a whole, which is there, was not taken for JSON."""
    return tuple(error["loc"]) == ("body",) and error["type"] != "missing"


_NOT_JSON = "expected JSON, and the header Content-Type: application/json"
_TOLD = 5
_LISTED = 100


async def _on_http(_: Request, error: Exception) -> Problem:
    if not isinstance(error, StarletteHTTPException):
        raise error
    return problem(error.status_code, str(error.detail), headers=error.headers)


async def _on_surprise(request: Request, error: Exception) -> Problem:
    log.error("%s %s failed", request.method, printable(request.url.path), exc_info=error)
    # Made outside of the layer that adds these to every other answer.
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "this is a mistake of the service; its log says more", headers=SECURITY
    )


def _located(mistake: str) -> tuple[str, str]:
    """`rate: expected …` as what it is about, and what is said."""
    at, colon, said = mistake.partition(": ")
    return (at, said) if colon else ("", mistake)
