"""Limits that hold before anything else is done: how many may ask, how often, and how large a body may be."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TypeVar

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redrive.core.ports import Clock
from redrive.door.cookie import session_in
from redrive.door.headers import SECURITY
from redrive.door.problems import RETRY_AFTER, refuse
from redrive.triage.bucket import Bucket

STREAMED = frozenset({"/api/v1/import"})
"""Paths whose bodies are read piece by piece: they may be of any length."""

ALIVE = "/healthz"
"""The path that is answered however many ask: a probe that is refused would end a service that is only busy."""

BURST = 2.0  # seconds' worth of requests that may come at once
_KEPT = 10_000  # buckets and callers that are remembered; those that were not seen for longest are forgotten
_NETWORK = 64  # bits of an IPv6 address that all belong to one customer of a network

Value = TypeVar("Value")


class FullHouse:
    """Answers 503 while there are as many as can be served; only to `ALIVE` there is always an answer."""

    def __init__(self, app: ASGIApp, *, is_full: Callable[[], bool]) -> None:
        self._app = app
        self._is_full = is_full

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != ALIVE and self._is_full():
            headers = {**SECURITY, "Connection": "close", "Retry-After": RETRY_AFTER}
            said = "as many requests are being answered as this service allows"
            status = HTTPStatus.SERVICE_UNAVAILABLE
            await refuse(scope, receive, send, status=status, detail=said, headers=headers)
            return
        await self._app(scope, receive, send)


class BodyCap:
    """Answers 413 to a body of more than `most` bytes, also where its length was not said beforehand."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in STREAMED:
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self._most:
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            await refuse(scope, receive, send, status=status, detail=self._said)
            return
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Callable[[], Awaitable[Message]]:
        read = 0

        async def receive_some() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._most:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._said, {"Connection": "close"})
            return message

        return receive_some

    @property
    def _said(self) -> str:
        return f"expected a body of at most {self._most:,} bytes"


class RateLimit:
    """Answers 429 to who asks more than `rate` times a second.

    Counted by caller, and by address for whoever has not been recognised yet: a token that nobody has checked is no
    name to count by, each guess would have a count of its own.
    """

    def __init__(self, app: ASGIApp, *, rate: float, clock: Clock) -> None:
        self._app = app
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()
        self._recognised: OrderedDict[str, None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = _token_hash(scope)
        bucket = self._bucket(token if token in self._recognised else _address(scope))
        if not bucket.take(1, now=self._clock.now()):
            status, headers = HTTPStatus.TOO_MANY_REQUESTS, {"Retry-After": "1"}
            await refuse(scope, receive, send, status=status, detail="too many requests", headers=headers)
            return
        scope.setdefault("state", {})
        await self._app(scope, receive, send)
        if token and scope["state"].get("caller") is not None and not scope["state"].get("is_stranger"):
            _remember(self._recognised, token, None)

    def _bucket(self, key: str) -> Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = Bucket(self._rate, room=max(self._rate * BURST, 1.0), now=self._clock.now())
        _remember(self._buckets, key, bucket)
        return bucket


def _token_hash(scope: Scope) -> str:
    """Which token a request carries, if any, in its header or in the cookie of who has signed in.

    A hash, so that no secret stays in memory for longer than its request.
    """
    headers = Headers(scope=scope)
    given = headers.get("authorization") or session_in(headers)
    return sha256(given.encode()).hexdigest() if given else ""


def _address(scope: Scope) -> str:
    """Where a request comes from: an address, or the network of one who may have as many addresses as they like."""
    host = (scope.get("client") or ("",))[0]
    try:
        address = ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(ip_network((address, _NETWORK), strict=False))
    return str(address)


def _remember(kept: OrderedDict[str, Value], key: str, value: Value) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _KEPT:
        kept.popitem(last=False)
