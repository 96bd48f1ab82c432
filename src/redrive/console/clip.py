"""Texts from strangers, as much of them as a page has room for."""

import re
from typing import NamedTuple

from markupsafe import escape

from redrive.core.printable import printable
from redrive.triage.masking import masked_text

ELLIPSIS = "…"
_BREAKS = re.compile("(\r\n|[\n\t])")
_PIECES = 64
_MARGIN = 1024  # characters that are masked behind those that are shown


class Clipped(NamedTuple):
    """A text that can be shown; `taken` is how many of its characters are in it."""

    text: str
    taken: int
    is_cut: bool


def clip(text: str, room: int) -> Clipped:
    """The beginning of a text of many lines, in at most `room` bytes of HTML. Costs no more than that, however long."""
    head = text[:room]
    whole = _shown(head)
    if len(head) == len(text) and weight(whole) <= room:
        return Clipped(whole, len(text), is_cut=False)
    size = max(room // _PIECES, 1)
    shown: list[str] = []
    taken = 0
    while taken < len(head):
        end = taken + size
        piece = head[taken : end + 1] if head[end - 1 : end + 1] == "\r\n" else head[taken:end]
        said = _shown(piece)
        room -= weight(said)
        if room < 0:
            break
        shown.append(said)
        taken += len(piece)
    return Clipped("".join(shown), taken, taken < len(text))


def line(text: str, room: int = 240) -> str:
    """A text as one line, its breaks escaped; an ellipsis says that it goes on."""
    found = clip(printable(text[:room]), room)
    return f"{found.text}{ELLIPSIS}" if found.is_cut or len(text) > room else found.text


def masked_line(text: str, room: int = 240) -> str:
    """The same as everybody may see it. Costs no more than what is shown of it: masking takes its time.

    What is left out begins far behind the last that is shown, so that no secret is cut in two before anybody's eyes.
    """
    head = text[: room + _MARGIN]
    shown = line(masked_text(head), room)
    return shown if len(head) == len(text) or shown.endswith(ELLIPSIS) else f"{shown}{ELLIPSIS}"


def weight(text: str) -> int:
    """How many bytes a text has in a page."""
    return len(escape(text).encode("utf-8", "replace"))


def _shown(text: str) -> str:
    """Line ends and tabs as they are, all other controls escaped."""
    parts = _BREAKS.split(text)
    return "".join(_BREAK.get(part) or printable(part) for part in parts) if len(parts) > 1 else printable(text)


_BREAK = {"\r\n": "\n", "\n": "\n", "\t": "\t"}
