"""The page about the API: made here from the OpenAPI document, without scripts, fonts or anything from elsewhere."""

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi.responses import HTMLResponse

from redrive.door.headers import SECURITY

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code{font:14px ui-monospace,monospace}h2{margin-top:2.5rem}dt{margin-top:1.2rem}dd{margin:0 0 0 1.5rem}"
    ".needs{opacity:.7}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"{SECURITY['Content-Security-Policy']}; style-src 'sha256-{_STYLE_HASH}'"


def page_of(document: dict[str, Any]) -> HTMLResponse:
    """The page."""
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    intro = (
        f"<h1>{title}</h1><p>{escape(document['info'].get('summary', ''))}</p>"
        '<p>The whole of it, with every field and examples, for tools: <a href="openapi.json">openapi.json</a>.</p>'
    )
    parts = "".join(_part(tag, document) for tag in dict.fromkeys(tag for *_, tag in _operations(document)))
    text = (
        f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head><body>{intro}{parts}</body></html>'
    )
    return HTMLResponse(text, headers={"Content-Security-Policy": _POLICY})


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation, operation.get("tags", [""])[0]


def _part(wanted: str, document: dict[str, Any]) -> str:
    found = [_entry(method, path, said) for method, path, said, tag in _operations(document) if tag == wanted]
    return f"<h2>{escape(wanted)}</h2><dl>{''.join(found)}</dl>"


def _entry(method: str, path: str, operation: dict[str, Any]) -> str:
    needs = operation.get("x-permission")
    said = f' <span class="needs">needs {escape(needs)}</span>' if needs else ""
    names = ", ".join(f"<code>{escape(one['name'])}</code>" for one in operation.get("parameters", []))
    about = escape(operation.get("description", ""))
    taken = f"<dd>{names}</dd>" if names else ""
    return f"<dt><code>{escape(method)} {escape(path)}</code>{said}</dt><dd>{about}</dd>{taken}"
