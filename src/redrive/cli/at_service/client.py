"""A service, asked for documents, pages and lines: with the token, and nobody else ever sees it.

Redirects are not followed, and proxies that the environment names are not used.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPResponse
from typing import Any, BinaryIO, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

from redrive.cli.at_service.address import Address
from redrive.cli.at_service.exchange import Exchange
from redrive.cli.at_service.problems import PROBLEM, error_of, stranger
from redrive.core.errors import ConfigError
from redrive.core.stored import Page

API = "/api/v1"
LARGEST_PAGE = 100
TRIES = 10  # of a request that comes too soon after others
PIECE = 64 * 1024
JSON, JSON_LINES = "application/json", "application/jsonl"

Value = TypeVar("Value")
Given = Mapping[str, Any]
"""By name; None is not given, a list is given often."""
Read = Callable[[Any], Value]
"""Makes a value of JSON. What it cannot read comes from no Redrive."""


class Client:
    """Asks one service.

    Raises Redrive's own errors for what the service refuses, `StoreUnavailable` if it is away, and `ConfigError` if
    what answers is no Redrive, or cannot prove who it is.
    """

    def __init__(self, url: str, *, token: str | None) -> None:
        self._address = Address.of(url)
        self._token = token

    async def get(self, path: str, given: Given | None = None, *, read: Read[Value]) -> Value:
        """What is at a path."""
        async with self._asked("GET", _with(path, given)) as (exchange, _):
            return self._value(await exchange.read(), read)

    async def page(self, path: str, given: Given, *, limit: int, after: str | None, read: Read[Value]) -> Page[Value]:
        """A page of a list. Raises `ConfigError` for a cursor that is none."""
        asked = {**given, "limit": min(limit, LARGEST_PAGE), "after": after}
        async with self._asked("GET", _with(path, asked)) as (exchange, response):
            rows = self._value(await exchange.read(), lambda rows: [read(row) for row in rows])
            return Page(rows, _cursor(response.getheader("Link")))

    async def post(self, path: str, document: Given | None = None, *, read: Read[Value]) -> Value:
        """What the service says to a document."""
        body = None if document is None else json.dumps(document).encode()
        async with self._asked("POST", path, body=body, sent=JSON) as (exchange, _):
            return self._value(await exchange.read(), read)

    async def send(self, path: str, lines: BinaryIO, *, read: Read[Value]) -> Value:
        """What the service says to lines, which are sent piece by piece."""
        async with self._asked("POST", path, body=_pieces(lines), sent=JSON_LINES) as (exchange, _):
            return self._value(await exchange.read(), read)

    async def lines(self, path: str, given: Given) -> AsyncIterator[bytes]:
        """The lines at a path, some at a time, not cut at their ends."""
        async with self._asked("GET", _with(path, given), wanted=JSON_LINES) as (exchange, _):
            while piece := await exchange.read_some(PIECE):
                yield piece

    @contextlib.asynccontextmanager
    async def _asked(
        self,
        method: str,
        path: str,
        *,
        body: bytes | Iterator[bytes] | None = None,
        sent: str = JSON,
        wanted: str = JSON,
    ) -> AsyncIterator[tuple[Exchange, HTTPResponse]]:
        """The answer to a request, which is a success of the kind that is wanted. Too soon, it is asked again."""
        headers = {"Accept": f"{wanted}, {PROBLEM}", "Connection": "close"}
        headers |= {} if body is None else {"Content-Type": sent}
        headers |= {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        for left in reversed(range(TRIES)):
            with Exchange(self._address) as exchange:
                where = f"{self._address.path}{API}{path}"
                response = await exchange.ask(method, where, headers=headers, body=body)
                if response.status != HTTPStatus.TOO_MANY_REQUESTS or isinstance(body, Iterator) or not left:
                    await self._refuse_other_than(wanted, exchange, response)
                    yield exchange, response
                    return
            await asyncio.sleep(_seconds(response.getheader("Retry-After")))

    async def _refuse_other_than(self, wanted: str, exchange: Exchange, response: HTTPResponse) -> None:
        kind = response.headers.get_content_type() if "Content-Type" in response.headers else "of no kind"
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            said = await exchange.read()
            location = response.getheader("Location")
            raise error_of(response.status, kind, said, url=self._address.url, location=location)
        if kind != wanted:
            raise stranger(self._address.url, f"the answer is {kind}")

    def _value(self, body: bytes, read: Read[Value]) -> Value:
        try:
            return read(json.loads(body))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            why = f"its answer cannot be read ({type(error).__name__}: {error})"
            raise stranger(self._address.url, why) from error


def nothing(_: Any) -> None:
    """Read an answer that says nothing new."""


@contextlib.contextmanager
def flags_named() -> Iterator[None]:
    """Let mistakes that a service finds be told by the flag that a person typed: `after: …` as `--after: …`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError([_by_flag(one) for one in error.mistakes]) from error


def _by_flag(mistake: str) -> str:
    at, colon, said = mistake.removeprefix("--").partition(": ")
    return f"--{_FLAGS.get(at, at.replace('_', '-'))}{colon}{said}"


_FLAGS = {
    "q": "text",
    "from": "since",
    "to": "until",
    "fingerprint": "incident",
    "user_id": "user",
    "tenant_id": "tenant",
}


def _with(path: str, given: Given | None) -> str:
    known = {name: value for name, value in (given or {}).items() if value is not None and value != []}
    query = urlencode({name: _text(value) for name, value in known.items()}, doseq=True, errors="surrogateescape")
    return f"{path}?{query}" if query else path


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _cursor(link: str | None) -> str | None:
    """Where the next page begins, as the header says."""
    address, _, relation = (link or "").partition(">")
    if 'rel="next"' not in relation:
        return None
    return parse_qs(urlsplit(address.lstrip("<")).query)["after"][0]


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        yield piece


def _seconds(text: str | None) -> float:
    return min(float(text), 60.0) if text is not None and text.isdecimal() else 1.0
