"""What went wrong, as problem+json (RFC 9457): the one place that knows which error has which HTTP status."""

import html
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

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
        home = html.escape(quote(scope.get("root_path", "")) + "/")
        step = _OUTSIDE if status is HTTPStatus.FORBIDDEN else next_step(status, method=scope["method"])
        text = _PAGE.format(title=status.phrase, detail=html.escape(shown(detail)), next=html.escape(step), home=home)
        await HTMLResponse(text, status, headers)(scope, receive, send)
    else:
        await problem(status, detail, headers=headers)(scope, receive, send)


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title} - Redrive</title>
<main>
<h1>{title}</h1>
<p>{detail}</p>
<p>{next}</p>
<p><a href="{home}">Overview</a></p>
</main>
"""

NEXT: Mapping[HTTPStatus, str] = {
    HTTPStatus.BAD_REQUEST: "Go back, mend what is named, and try again.",
    HTTPStatus.UNAUTHORIZED: "Whoever has no token gets one from an admin of this service.",
    HTTPStatus.FORBIDDEN: "Somebody with another role may do this; the token that you signed in with may not.",
    HTTPStatus.NOT_FOUND: "It may have been purged, or the address has a mistake. Search for it among the letters.",
    HTTPStatus.METHOD_NOT_ALLOWED: "Go back, and use the page's own buttons.",
    HTTPStatus.CONFLICT: "Nothing was changed. Look again at how things are now, and decide anew.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Nothing was changed. Go back and send less; the command line takes more.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Nothing was changed. Go back, make it shorter or plainer, and try again.",
    HTTPStatus.TOO_MANY_REQUESTS: "Wait a second, and load the page again.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Try again. If it stays so, report it with what the log says.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Nothing is lost. Try again in a few seconds; redrive doctor says more.",
}
"""What a person who got this answer does next, in a sentence."""
_UNSURE = "It may have been done all the same: look at how things are now, or into the audit, before you try again."
_OUTSIDE = "Open this service at its own address on its own machine, or let an admin issue you a token."


def next_step(status: int, *, method: str = "GET") -> str:
    """What to do about an answer; one that nobody thought of has a sentence too.

    What was to change something and had no answer may have been done: nobody is told to do it again blindly.
    """
    if status == HTTPStatus.SERVICE_UNAVAILABLE and method not in ("GET", "HEAD"):
        return _UNSURE
    return NEXT.get(HTTPStatus(status), "Go back, and try again.")


def status_of(error: RedriveError) -> HTTPStatus:
    """The status of an error: that of its nearest kind; one that nobody thought of is ours to mend."""
    for kind in type(error).__mro__:
        if kind in _STATUS:
            return _STATUS[kind]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def shown(text: str) -> str:
    """A text from strangers, made harmless; passwords in URLs are masked."""
    return printable(mask_url(text))
