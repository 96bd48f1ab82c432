"""A payload as a page shows it: as a tree, as text, or in hexadecimal; never more of it than fits."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from redrive.console.clip import clip
from redrive.console.tree import parsed, tree
from redrive.console.words import size

ROOM = 56 * 1024  # bytes of a page
PARSED = 512 * 1024  # bytes of JSON that are looked into
_HEX = 10 * 1024  # bytes that are shown in hexadecimal
_ROW = 16
_CONTROLS = frozenset(range(32)) - {*b"\t\n\r\x1b"}  # what text does not hold; \x1b colours some logs


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadView:
    """What is to be seen: in which view, which others there are, and what was left out, in words."""

    view: str
    views: tuple[str, ...]
    content: str
    note: str = ""


def payload_view(payload: bytes, wanted: str = "", *, is_hidden: bool = False) -> PayloadView:
    """A payload in the view that is wanted, or in the one that suits it best.

    One that `is_hidden` is a text about the payload: there is nothing of it to be seen in hexadecimal.
    """
    value = _value(payload)
    views = (*(("tree",) if value is not None else ()), "text", *(() if is_hidden else ("hex",)))
    best = views[0] if value is not None or is_hidden or _is_text(payload) else "hex"
    view = wanted if wanted in views else best
    if view == "tree" and value is not None:
        content, is_cut = tree(value[0], room=ROOM)
        note = "Too much to be shown whole: what was left out is marked." if is_cut else ""
        return PayloadView(view=view, views=views, content=content, note=note)
    if view == "hex":
        shown = "\n".join(_rows(payload[:_HEX]))
        return PayloadView(view=view, views=views, content=shown, note=_first(min(len(payload), _HEX), payload))
    text = payload[:ROOM].decode("utf-8", "backslashreplace")
    found = clip(text, ROOM)
    taken = len(text[: found.taken].encode("utf-8", "replace")) if found.is_cut else min(len(payload), ROOM)
    return PayloadView(view=view, views=views, content=found.text, note=_first(min(taken, len(payload)), payload))


def _value(payload: bytes) -> tuple[Any] | None:
    """What the payload holds as JSON, in a tuple: it may be null. None for what is no object or array."""
    if len(payload) > PARSED or not payload.lstrip().startswith((b"{", b"[")):
        return None
    try:
        return (parsed(payload),)
    except ValueError:
        return None


def _is_text(payload: bytes) -> bool:
    head = payload[:ROOM]
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3 or len(head) == len(payload):
            return False
    return _CONTROLS.isdisjoint(head)


def _first(shown: int, payload: bytes) -> str:
    return "" if shown >= len(payload) else f"The first {size(shown)} of {size(len(payload))}."


def _rows(payload: bytes) -> Iterator[str]:
    for start in range(0, len(payload), _ROW):
        some = payload[start : start + _ROW]
        text = "".join(chr(byte) if 32 <= byte < 127 and byte not in b"<>&\"'" else "." for byte in some)  # noqa: PLR2004
        yield f"{start:08x}  {some.hex(' '):<{3 * _ROW}} {text}"
