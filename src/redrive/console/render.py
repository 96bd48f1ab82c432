"""From a template and facts to an answer. Everything is escaped: what letters hold comes from strangers."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from redrive.console import charts, clip, words
from redrive.core.printable import printable

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
FRAGMENT = "x-fragment"
"""The header by which the page's own script asks for one block of a page, to put it in place of the one it shows."""
LIVE = ("live", "story", "acts")
"""The blocks that it may ask for: pages that know this make no more than these need."""


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("redrive.console"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {
        "exact": words.exact,
        "number": words.number,
        "counted": words.counted,
        "size": words.size,
        "several": words.several,
        "span": words.span,
        "printable": printable,
        "line": clip.line,
    }
    made.globals |= {"bars": charts.bars, "spark": charts.spark}
    made.globals["ui"] = made.get_template("ui.html").module
    return made


_TEMPLATES = _environment()


def asset_version() -> str:
    """Changes whenever a file that browsers may keep does."""
    folder = resources.files("redrive.console") / "static"
    hashed = sha256()
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        hashed.update(one.read_bytes())
    return hashed.hexdigest()[:12]


ASSETS = asset_version()


def url(request: Request, name: str, /, query: Mapping[str, Any] | None = None, **parts: str) -> str:
    """The address of a page by its name, wherever the console is mounted; what `query` has as None is left out."""
    # By a table: a page has a hundred addresses, and the router would look through all its routes for each.
    pattern = request.app.state.patterns[name]
    # Twice: a slash in a part is no slash of the path, neither to a browser nor to whoever decodes the path once.
    quoted = {key: quote(quote(value, safe="", errors="replace")) for key, value in parts.items()}
    path = pattern.format(**quoted) if parts else pattern
    given = {key: value for key, value in (query or {}).items() if value not in (None, "", ())}
    address = f"{request.scope.get('root_path', '')}{path}"
    return f"{address}?{urlencode(given, doseq=True, errors='replace')}" if given else address


def render(
    request: Request, template: str, facts: Mapping[str, Any], *, now: datetime, status: int = HTTPStatus.OK
) -> Response:
    """The page, or the one block of it that the page's script asks for; 304 if the script has it already."""
    found = _TEMPLATES.get_template(template)
    given = {
        **facts,
        "url": partial(url, request),
        "ago": partial(words.ago, now=now),
        "now": now,
        "assets": ASSETS,
        "path": request.url.path,
    }
    wanted = request.headers.get(FRAGMENT)
    # With no-referrer a browser sends our own forms with `Origin: null`, as if a stranger had.
    headers = {"Content-Security-Policy": POLICY, "Vary": FRAGMENT, "Referrer-Policy": "same-origin"}
    if wanted is None:
        return HTMLResponse(_encoded(found.render(given)), status, headers)
    if wanted not in LIVE or wanted not in found.blocks:
        raise HTTPException(HTTPStatus.NOT_FOUND, "this page has no such part")
    body = _encoded("".join(found.blocks[wanted](found.new_context(given))))
    headers["ETag"] = f'"{sha256(body).hexdigest()[:32]}"'
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return HTMLResponse(body, status, headers)


def _encoded(html: str) -> bytes:
    """As it is sent. A letter may hold half of a character, which no encoding has."""
    return html.encode("utf-8", "replace")
