"""Signing in: a token's secret, once given, travels in a cookie that no script can read and no other site can send.

There is nothing to keep beside it: every request finds out whose token it is, so one that is revoked or expires opens
nothing from then on, at every replica.
"""

from starlette.requests import Request
from starlette.responses import Response

from redrive.door.cookie import SESSION, session_in

NAME = SESSION
LASTS = 12 * 60 * 60  # seconds; then the token is asked for again


def secret_in(request: Request) -> str | None:
    """The secret that a request brings along, if any."""
    return session_in(request.headers)


def begin(response: Response, request: Request, secret: str) -> None:
    """Let the browser bring the secret along from now on."""
    response.set_cookie(
        NAME,
        secret,
        max_age=LASTS,
        path=_path(request),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def end(response: Response, request: Request) -> None:
    """Let the browser forget it."""
    response.delete_cookie(NAME, path=_path(request), httponly=True, samesite="strict")


def _path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/"
