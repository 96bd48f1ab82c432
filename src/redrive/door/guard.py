"""Who is calling, found out before anything is done for them."""

from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from redrive.core.errors import StoreError, StoreUnavailable
from redrive.door.problems import refuse
from redrive.service import Service
from redrive.triage.access import LOCAL, Caller, recognise

BEARER = "bearer "
NO_ANSWER = "the store, which knows the tokens, does not answer"
NOT_RECOGNISED = "this needs a token that is valid: Authorization: Bearer rdt_…"


@dataclass(slots=True)
class Guard:
    """How callers are told apart. Without `needs_token` one without a token is `local`, an admin: only on loopback.

    A token that is given must be valid all the same. `is_sure` says whether it is known that tokens are needed: that
    is asked of the store, which may be away.
    """

    needs_token: bool
    is_sure: bool = True

    def stranger(self) -> Caller | None:
        """Who somebody without a token is; None if they need one. Raises `StoreUnavailable` while nobody knows."""
        if not self.is_sure:
            raise StoreUnavailable(NO_ANSWER)
        return None if self.needs_token else LOCAL

    async def caller(self, request: HTTPConnection, service: Service) -> Caller:
        """Who is calling, by their token. Raises `HTTPException` 401, and `StoreUnavailable`."""
        given = request.headers.getlist("authorization")
        if not given and (stranger := self.stranger()):
            return stranger
        if len(given) == 1 and given[0].lower().startswith(BEARER):
            caller = await recognised(service, given[0][len(BEARER) :].strip())
            if caller is not None:
                return caller
        raise HTTPException(HTTPStatus.UNAUTHORIZED, NOT_RECOGNISED, {"WWW-Authenticate": 'Bearer realm="redrive"'})


async def recognised(service: Service, secret: str) -> Caller | None:
    """Whose token this is; None if it opens nothing. Raises `StoreUnavailable`."""
    try:
        return await recognise(service.store, secret, service.clock.now())
    except StoreError as error:
        # Without what it says: whoever asks has not shown yet that they may know where the store is.
        raise StoreUnavailable(NO_ANSWER) from error


class LoopbackOnly:
    """Answers 403 to what a page of somebody else may have sent: for a service that takes callers without a token.

    A page may make a browser ask 127.0.0.1, under any name that resolves to it. It can hide neither that name nor
    where it is from.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (why := _foreign(Headers(scope=scope))):
            await refuse(scope, receive, send, status=HTTPStatus.FORBIDDEN, detail=why)
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
