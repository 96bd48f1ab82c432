"""A redrive under way: shown step by step, its answer in words at the end."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from redrive.cli.clerk import Redrives
from redrive.cli.output import Exit, complain, tell
from redrive.core.errors import StoreUnavailable
from redrive.core.printable import printable
from redrive.core.redrive import ItemStatus, Progress, Redrive, RedriveState

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.text import Text

    from redrive.triage.drive import Told
    from redrive.triage.redrives import Shown

_ANSWERED = (
    *(ItemStatus.SUCCEEDED, ItemStatus.FAILED, ItemStatus.FAILED_OTHERWISE),
    *(ItemStatus.QUIET, ItemStatus.UNCONFIRMED, ItemStatus.SKIPPED),
)
_BEGUN = (*_ANSWERED, ItemStatus.SENT)
_BAD = (ItemStatus.FAILED, ItemStatus.FAILED_OTHERWISE, ItemStatus.UNCONFIRMED, ItemStatus.SKIPPED)


async def carry_out(redrives: Redrives, redrive_id: str, *, as_json: bool) -> Exit:
    """Let a redrive run and show how far it is, to its end; say how it ended."""
    found = await redrives.show(redrive_id)
    with shown(found.redrive, as_json=as_json) as screen:
        try:
            await redrives.carry_out(redrive_id, tell=screen)
        except (asyncio.CancelledError, StoreUnavailable):
            complain([redrives.interrupted.format(redrive_id=redrive_id)])
            raise
    return await say_how_it_is(redrives, redrive_id, as_json=as_json)


async def say_how_it_is(redrives: Redrives, redrive_id: str, *, as_json: bool) -> Exit:
    """Say in one sentence how a redrive stands; 0 only if it is done and everything was resolved."""
    found = await redrives.show(redrive_id)
    tell(fact_of(found), found.verdict, as_json=as_json)
    if found.redrive.state is RedriveState.PAUSED and not as_json:
        complain(
            [f"go on past it: redrive redrives resume {redrive_id}; or end it: redrive redrives cancel {redrive_id}"]
        )
    done = found.redrive.state is RedriveState.DONE and not found.progress.count(*_BAD)
    return Exit.OK if done else Exit.NO


def fact_of(found: "Shown") -> dict[str, Any]:
    """A redrive and how far it is, as one JSON line."""
    from dataclasses import asdict

    steps = found.progress.steps
    return {
        **asdict(found.redrive),
        "targets": [target._asdict() for target in found.redrive.targets],
        "progress": [{status.value: number for status, number in step.items() if number} for step in steps],
        "versions": found.progress.versions,
        "verdict": found.verdict,
    }


def answered(progress: Progress) -> int:
    """How many letters of a redrive have their answer."""
    return progress.count(*_ANSWERED)


class Screen:
    """Hears how far a redrive is: a bar on a terminal, else a line for each step that has its answers."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._steps_told = 0
        self._waiting_told = ""

    def __call__(self, told: "Told") -> None:
        """Show it."""
        for step, counts in enumerate(told.progress.steps[self._steps_told :], self._steps_told):
            if not counts or any(status.out or status is ItemStatus.PLANNED for status in counts if counts[status]):
                break
            self._steps_told = step + 1
            if step < len(told.redrive.steps) and answered(Progress((counts,))):
                self._say(told, step, Progress((counts,)))
        if told.waiting and told.waiting != self._waiting_told:
            self._waiting_told = told.waiting
            if not self._as_json:
                complain([f"waiting: {told.waiting}"])

    def _say(self, told: "Told", step: int, counts: Progress) -> None:
        fact = {"redrive_id": told.redrive.redrive_id, "step": step + 1, **_counted(counts)}
        words = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in _counted(counts).items())
        tell(fact, f"step {step + 1} of {len(told.redrive.steps) + 1}: {words}", as_json=self._as_json)


class Bar:
    """The same on a terminal: one bar, and below it why nothing moves."""

    def __init__(self, bars: "Bars", waiting: "Text", *, total: int) -> None:
        self._bars = bars
        self._task = bars.add_task("step 1", total=total, failed="")
        self._waiting = waiting

    def __call__(self, told: "Told") -> None:
        """Show it."""
        begun = sum(1 for counts in told.progress.steps if any(counts.get(one) for one in _BEGUN))
        failed = told.progress.count(*_BAD)
        self._bars.update(
            self._task,
            completed=answered(told.progress),
            description=f"step {max(begun, 1)} of {len(told.redrive.steps) + 1}",
            failed=f"{failed:,} not resolved" if failed else "",
        )
        self._waiting.plain = f"waiting: {printable(told.waiting)}" if told.waiting else ""


@contextmanager
def shown(redrive: Redrive, *, as_json: bool) -> Iterator[Screen | Bar]:
    """Where a redrive is shown for as long as the block lasts; call it with what is told."""
    if as_json or not sys.stderr.isatty():
        yield Screen(as_json=as_json)
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    failed = TextColumn("{task.fields[failed]}", style="red")
    bars = Bars(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), failed)
    waiting = Text(style="dim", no_wrap=True, overflow="ellipsis")
    with Live(Group(bars, waiting), console=Console(stderr=True), transient=True):
        yield Bar(bars, waiting, total=redrive.total)


def _counted(progress: Progress) -> dict[str, int]:
    return {status.value: number for status in ItemStatus if (number := progress.count(status))}
