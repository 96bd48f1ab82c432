"""What went wrong, as problem+json (RFC 9457): the one place that knows which error has which HTTP status."""

import html
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse
from starlette.types import Receive, Scope, Send

from redrive.core.errors import (
    BrokerError,
    BrokerUnavailable,
    ConfigError,
    DeadLetterError,
    LetterNotFound,
    NotAllowed,
    QueueNotFound,
    RedriveError,
    StateConflict,
    StoreError,
    StoreUnavailable,
)
from redrive.core.printable import printable
from redrive.core.url import mask_url
from redrive.core.wire.plain import dump

RETRY_AFTER = "5"  # seconds: about what a store or a broker needs to come back from a restart

_STATUS: Mapping[type[RedriveError], HTTPStatus] = {
    ConfigError: HTTPStatus.BAD_REQUEST,
    NotAllowed: HTTPStatus.FORBIDDEN,
    LetterNotFound: HTTPStatus.NOT_FOUND,
    QueueNotFound: HTTPStatus.NOT_FOUND,
    StateConflict: HTTPStatus.CONFLICT,
    DeadLetterError: HTTPStatus.CONFLICT,
    StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    BrokerUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreError: HTTPStatus.UNPROCESSABLE_ENTITY,  # a letter that the store cannot keep
    BrokerError: HTTPStatus.CONFLICT,  # the broker is there and says no
}


class Problem(JSONResponse):
    """An answer that says what went wrong."""

    media_type = "application/problem+json"

    def render(self, content: Any) -> bytes:
        return dump(content)


def problem(
    status: int,
    detail: str,
    *,
    errors: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> Problem:
    """The answer for a problem. Text from strangers is made harmless; passwords in URLs are masked."""
    found = HTTPStatus(status)
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": found.phrase,
        "status": found.value,
        "detail": shown(detail),
    }
    if errors:
        content["errors"] = [{name: shown(text) for name, text in error.items()} for error in errors]
    return Problem(content, found.value, headers=None if headers is None else dict(headers))


async def refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    status: HTTPStatus,
    detail: str,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Answer a request that goes no further than the door: a page for a browser, a problem for anybody else."""
    if "text/html" in Headers(scope=scope).get("accept", ""):
        text = _PAGE.format(title=status.phrase, detail=html.escape(shown(detail)))
        await HTMLResponse(text, status, headers)(scope, receive, send)
    else:
        await problem(status, detail, headers=headers)(scope, receive, send)


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title} - Redrive</title>
<h1>{title}</h1>
<p>{detail}</p>
"""


def status_of(error: RedriveError) -> HTTPStatus:
    """The status of an error: that of its nearest kind; one that nobody thought of is ours to mend."""
    for kind in type(error).__mro__:
        if kind in _STATUS:
            return _STATUS[kind]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def shown(text: str) -> str:
    """A text from strangers, made harmless; passwords in URLs are masked."""
    return printable(mask_url(text))
