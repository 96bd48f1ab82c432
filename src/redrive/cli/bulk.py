"""Work on many letters: what it would do, said first, and how far it is, shown while it runs."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from redrive.cli.output import Fact
from redrive.cli.sheet import Part, tell_sheet
from redrive.core.stored import Count
from redrive.triage.selection import Preview

LISTED = 10  # queues and types of error that a preview names


def words_of(count: int) -> str:
    """`1 letter`, `12,000 letters`."""
    return f"{count:,} letter{'s' * (count != 1)}"


def count_of(count: Count) -> str:
    """A count as it is shown: `10,000+` where it is at least so many."""
    return f"{count.number:,}{'+' * count.capped}"


def preview_of(
    found: Preview, verb: str, *, as_json: bool, more: Sequence[Part] = (), facts: Fact | None = None
) -> None:
    """Say what would be done to a selection, and how to do it."""
    fact = {"dry_run": True, **asdict(found), **(facts or {})}
    ending = "; add --yes to do it" if found.count else ""
    parts = [Part("by queue", _most(found.by_queue)), Part("by error", _most(found.by_error_type)), *more]
    head = f"would {verb} {words_of(found.count)} ({found.words}){ending}"
    tell_sheet(fact, head, parts if found.count else [], as_json=as_json)


def _most(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    rows = [(name, f"{number:,}") for name, number in counts.items()]
    return rows if len(rows) <= LISTED else [*rows[:LISTED], (f"and {len(rows) - LISTED} more", "")]


@contextmanager
def show_progress(what: str, *, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal while the block lasts, if there is anything to do; call it with how many more are done.

    A total of None is one that is not known.
    """
    if total == 0 or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.update(task, advance=more)
