"""`redrive redrives`: the record of sending letters back: look, watch, pause, resume, cancel."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import App, Parameter

from redrive.cli.anywhere import BOTH, STORE, Anywhere, AnywhereBoth, open_clerk, rows_of
from redrive.cli.output import Column, Exit, age, complain, show, tell
from redrive.cli.sheet import Part, tell_sheet
from redrive.core.redrive import ItemStatus, Progress, Redrive, RedriveState

redrives = App(name="redrives", help="What was sent back and what became of it: watch, pause, resume, cancel.")

RedriveId = Annotated[str, Parameter(help="The redrive, as the list shows it.")]
Why = Annotated[str, Parameter(help="What the next person should know.")]
POLL = 0.5

_STYLES = {"running": "cyan", "paused": "yellow", "stopped": "red", "cancelled": "dim", "done": "green"}
_COLUMNS = (
    Column("redrive", "redrive_id", style=lambda _: "bold"),
    Column("age", "created_at", right=True, style=lambda _: "dim", shown=lambda at: age(at, now=datetime.now(UTC))),
    Column("by", "by"),
    Column("state", "state", style=lambda state: _STYLES.get(state, "")),
    Column("letters", "total", right=True),
    Column("what became of it", "verdict", wraps=True),
)


@redrives.default
@redrives.command(name="list")
async def list_redrives(
    *,
    count: Annotated[int, Parameter(help="How many, the latest first; 20 unless told.")] = 20,
    after: Annotated[str | None, Parameter(help="Go on behind the last page, as it said.")] = None,
    at: Anywhere = STORE,
) -> None:
    """Show redrives, the latest first, each with its answer in words."""
    from redrive.cli.redriving import fact_of

    async with open_clerk(at) as clerk:
        page = await rows_of(
            lambda limit, after: clerk.redrives.find(limit=limit, after=after), count=count, after=after
        )
        facts = [fact_of(await clerk.redrives.show(one.redrive_id)) for one in page.rows]
    show(facts, _COLUMNS, as_json=at.json, empty="nothing was sent back yet")
    if page.after is not None:
        complain([f"there are more: --after {page.after}"])


@redrives.command(name="show")
async def show_redrive(redrive_id: RedriveId, /, *, at: Anywhere = STORE) -> None:
    """Show one redrive: what was asked for, how far each step is, and the answer in words."""
    from redrive.cli.redriving import fact_of

    async with open_clerk(at) as clerk:
        found = await clerk.redrives.show(redrive_id)
    head = f"redrive {redrive_id}: {found.redrive.state}"
    parts = _parts(found.redrive, found.progress, found.verdict)
    tell_sheet(fact_of(found), head, parts, as_json=at.json)


@redrives.command
async def watch(redrive_id: RedriveId, /, *, at: Anywhere = STORE) -> Exit:
    """Watch a redrive that another process carries out, until it ends or pauses. Changes nothing."""
    from redrive.cli.redriving import say_how_it_is, shown
    from redrive.triage.drive import Told

    async with open_clerk(at) as clerk:
        found = await clerk.redrives.show(redrive_id)
        with shown(found.redrive, as_json=at.json) as screen:
            while found.redrive.state is RedriveState.RUNNING:
                screen(Told(found.redrive, found.progress))
                await asyncio.sleep(POLL)
                found = await clerk.redrives.show(redrive_id)
        return await say_how_it_is(clerk.redrives, redrive_id, as_json=at.json)


@redrives.command
async def pause(redrive_id: RedriveId, /, *, why: Why = "", at: Anywhere = STORE) -> None:
    """Send nothing more until it is resumed; what is out stays out, and is heard."""
    async with open_clerk(at) as clerk:
        _tell(await clerk.redrives.pause(redrive_id, why=why), at)


@redrives.command
async def resume(redrive_id: RedriveId, /, *, at: AnywhereBoth = BOTH) -> Exit:
    """Go on with a redrive that was paused or interrupted: here, in the foreground, or at the service.

    Canaries that failed in another way, or were not heard of, have been seen now and hold it up no longer.
    """
    from redrive.cli.redriving import carry_out

    async with open_clerk(at) as clerk:
        await clerk.redrives.resume(redrive_id)
        return await carry_out(clerk.redrives, redrive_id, as_json=at.json)


@redrives.command
async def cancel(redrive_id: RedriveId, /, *, why: Why = "", at: Anywhere = STORE) -> None:
    """End a redrive: what was not sent stays as it was, what is out is still heard."""
    async with open_clerk(at) as clerk:
        _tell(await clerk.redrives.cancel(redrive_id, why=why), at)


def _tell(redrive: Redrive, at: Anywhere) -> None:
    fact = {"redrive_id": redrive.redrive_id, "state": redrive.state.value, "why": redrive.why}
    tell(fact, f"redrive {redrive.redrive_id} is {redrive.state}: {redrive.why}", as_json=at.json)


def _parts(redrive: Redrive, progress: Progress, verdict: str) -> list[Part]:
    asked = {
        "by": f"{redrive.by}, {redrive.created_at:%Y-%m-%d %H:%M:%S}Z",
        "letters": f"{redrive.total:,}: {redrive.selection}",
        "rate": f"{redrive.rate:g}/s" if redrive.rate else "",
        "to": ", ".join(f"{one.queue} ({one.group or 'every group'})" for one in redrive.targets),
        "confirm": redrive.confirm,
        "ended": f"{redrive.ended_at:%Y-%m-%d %H:%M:%S}Z" if redrive.ended_at else "",
        "why": redrive.why,
    }
    steps = [
        (str(number), ", ".join(f"{counts[status]:,} {status.value}" for status in ItemStatus if counts.get(status)))
        for number, counts in enumerate(progress.steps, 1)
    ]
    return [
        Part("did it work?", [("", verdict)]),
        Part("what was asked for", [(name, text) for name, text in asked.items() if text]),
        Part("step by step", steps),
    ]
