"""What people and programs read: tables on a terminal, plain columns in a pipe, JSON lines on request.

Colour is made here and nowhere else. Text that came from outside never reaches the terminal unescaped.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Literal

from redrive.core.errors import (
    BrokerUnavailable,
    ConfigError,
    LetterNotFound,
    MissingExtra,
    QueueNotFound,
    RedriveError,
    StoreUnavailable,
)
from redrive.core.printable import printable
from redrive.core.url import mask_url

WRAPS_AT = 16  # prose that has less room than this is hard to read

Fact = Mapping[str, Any]
"""One thing to be told: what `--json` prints as one line."""


class Exit(IntEnum):
    """The exit statuses; scripts may rely on them."""

    OK = 0
    NO = 1  # the command ran, and the answer is no: a finding, a refusal, a sum that does not add up
    USAGE = 2  # wrong flags or settings
    UNAVAILABLE = 3  # the broker, the store or the service cannot be reached for now
    NOT_FOUND = 4  # no such queue, letter, incident, redrive or token
    INTERRUPTED = 130


_EXITS: tuple[tuple[type[RedriveError], Exit], ...] = (
    (ConfigError, Exit.USAGE),
    (MissingExtra, Exit.USAGE),
    (BrokerUnavailable, Exit.UNAVAILABLE),
    (StoreUnavailable, Exit.UNAVAILABLE),
    (QueueNotFound, Exit.NOT_FOUND),
    (LetterNotFound, Exit.NOT_FOUND),
    (RedriveError, Exit.NO),
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its heading, the fact's key, and how it looks.

    Only prose `wraps`. A `spare` one is left out of a terminal that is too narrow for all.
    """

    title: str
    key: str
    right: bool = False
    wraps: bool = False
    spare: bool = False
    style: Callable[[Any], str] = lambda _: ""
    shown: Callable[[Any], str] | None = None


def show(facts: Iterable[Fact], columns: Sequence[Column], *, as_json: bool, empty: str) -> None:
    """Print facts: as JSON lines, else as a table with the given columns, else the line `empty`."""
    if as_json:
        for fact in facts:
            _write(_as_json(fact))
        return
    facts = list(facts)
    if not facts:
        _write(empty)
    elif sys.stdout.isatty():
        _table(facts, columns)
    else:
        _plain(facts, columns)


def tell(fact: Fact, text: str, *, as_json: bool) -> None:
    """Print what was done: the fact as a JSON line, or the text."""
    _write(_as_json(fact) if as_json else printable(text))


def count_up(done: int, *, total: int) -> None:
    """Show on a terminal how far a long command is; the last call wipes it away."""
    if sys.stderr.isatty() and (done % 10 == 0 or done == total):
        sys.stderr.write("\r\x1b[K" if done == total else f"\r{done} of {total}")
        sys.stderr.flush()


def complain(lines: Iterable[str]) -> None:
    """Say on stderr what is wrong, one line each."""
    for line in lines:
        sys.stderr.write(f"redrive: {printable(mask_url(line))}\n")


def exit_for(error: Exception) -> Exit | None:
    """Say what went wrong and return the exit status; None for an error that is not Redrive's own."""
    for kind, status in _EXITS:
        if isinstance(error, kind):
            complain(error.mistakes if isinstance(error, ConfigError) else [str(error)])
            return status
    return None


def age(since: datetime | None, *, now: datetime) -> str:
    """How long ago, in one or two units; `-` for never."""
    return "-" if since is None else span(now - since)


def span(length: timedelta) -> str:
    """A length of time as people say it.

    >>> span(timedelta(seconds=7)), span(timedelta(minutes=61)), span(timedelta(days=3, hours=2))
    ('7s', '1h 1m', '3d 2h')
    """
    seconds = max(int(length.total_seconds()), 0)
    for size, name, smaller, rest in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            left = seconds % size // smaller
            return f"{seconds // size}{name} {left}{rest}" if left else f"{seconds // size}{name}"
    return f"{seconds}s"


def preview(body: bytes | None, *, width: int = 60) -> str:
    """The beginning of a payload as text that a terminal can show."""
    if body is None:
        return "-"
    text = printable(body[: 4 * width].decode("utf-8", "backslashreplace"))
    return text if len(text) <= width and len(body) <= 4 * width else text[: width - 1] + "…"


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _as_json(fact: Fact) -> str:
    return json.dumps(fact, default=_encoded)  # ASCII: no control character in a payload reaches a terminal


def _encoded(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _cell(column: Column, fact: Fact) -> str:
    value = fact.get(column.key)
    if column.shown is not None:
        return printable(column.shown(value))
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}Z"
    return printable(str(value)) if value not in (None, "") else "-"


def _plain(facts: Sequence[Fact], columns: Sequence[Column]) -> None:
    rows = [[column.title for column in columns], *([_cell(column, fact) for column in columns] for fact in facts)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(columns))]
    for row in rows:
        cells = (
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(row, widths, columns, strict=True)
        )
        _write("  ".join(cells).rstrip())


def _table(facts: Sequence[Fact], columns: Sequence[Column]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    columns = _fitting(facts, columns, room=console.width)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(column.title, justify=justify, overflow="fold", no_wrap=not column.wraps)
    for fact in facts:
        table.add_row(*(Text(_cell(one, fact), style=one.style(fact.get(one.key))) for one in columns))
    console.print(table)


def _fitting(facts: Sequence[Fact], columns: Sequence[Column], *, room: int) -> Sequence[Column]:
    """The columns without spare ones, the last first, but before all others those that say nothing, until they fit."""
    kept = list(columns)
    spare = [column for column in reversed(columns) if column.spare]
    for column in sorted(spare, key=lambda one: any(fact.get(one.key) for fact in facts)):
        if sum(_width(one, facts) + 2 for one in kept) - 2 <= room:
            break
        kept.remove(column)
    return kept


def _width(column: Column, facts: Sequence[Fact]) -> int:
    widest = max(len(column.title), *(len(_cell(column, fact)) for fact in facts))
    return min(widest, WRAPS_AT) if column.wraps else widest
