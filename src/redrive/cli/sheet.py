"""A sheet: one thing told at length, in titled parts. JSON on request, styled on a terminal, plain elsewhere."""

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redrive.cli.output import Fact, tell
from redrive.core.printable import printable

_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Part(NamedTuple):
    """A titled part: rows of a label and a text. A part without rows is left out."""

    title: str
    rows: Sequence[tuple[str, str]]


def block(text: str, *, most: int) -> list[tuple[str, str]]:
    """The lines of a text as rows without a label; what is beyond `most` lines is only counted."""
    lines = text.splitlines() or [""]
    rows = [("", line) for line in lines[:most]]
    return rows if len(lines) <= most else [*rows, ("", f"… {len(lines) - most} more lines")]


def tell_sheet(fact: Fact, head: str, parts: Iterable[Part], *, as_json: bool) -> None:
    """Print the fact as a JSON line, or the head and the parts."""
    if as_json:
        tell(fact, "", as_json=True)
        return
    bold, dim, plain = (_BOLD, _DIM, _PLAIN) if _styled() else ("", "", "")
    sys.stdout.write(f"{bold}{printable(head)}{plain}\n")
    for title, rows in parts:
        if not rows:
            continue
        sys.stdout.write(f"\n{bold}{printable(title)}{plain}\n")
        width = max(len(label) for label, _ in rows)
        for label, text in rows:
            space = "  " if width else ""
            sys.stdout.write(f"  {dim}{printable(label.ljust(width))}{plain}{space}{printable(text)}".rstrip() + "\n")


def _styled() -> bool:
    from redrive.config import load_settings

    return sys.stdout.isatty() and load_settings().color
