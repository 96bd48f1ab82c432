"""`redrive incidents`: letters that failed the same way, looked at and looked after together."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from redrive.cli.anywhere import STORE, Anywhere, open_clerk, rows_of
from redrive.cli.clerk import Incidents
from redrive.cli.desk import SHORT
from redrive.cli.output import Column, age, complain, preview, show, tell
from redrive.cli.sheet import Part, block, tell_sheet
from redrive.core.errors import ConfigError
from redrive.core.likeness import Likeness
from redrive.core.stored import IncidentRow

if TYPE_CHECKING:
    from redrive.triage.incidents import Shown

incidents = App(name="incidents", help="Letters that failed the same way: look at them, note, assign, mute, resolve.")

IncidentId = Annotated[str, Parameter(help="The incident, as the list shows it.")]
HOURS = 24
LATEST = 5
_STATE_STYLES = {"open": "red", "muted": "yellow", "resolved": "green"}
_BARS = "▁▂▃▄▅▆▇█"


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")  # noqa: PLR2004 - two fit


_COLUMNS = (
    Column("incident", "incident_id", style=lambda _: "bold"),
    Column("open", "open", right=True, style=lambda count: "red" if count else "dim"),
    Column("total", "total", right=True),
    Column("last", "last_at", right=True, style=lambda _: "dim", shown=lambda at: age(at, now=datetime.now(UTC))),
    Column("queues", "queues", shown=_named),
    Column("state", "state", style=lambda state: _STATE_STYLES.get(state, "")),
    Column("error", "error", wraps=True),
    Column("assignee", "assignee"),
    Column("note", "note", wraps=True, style=lambda _: "dim"),
)


@incidents.default
@incidents.command(name="list")
async def list_incidents(
    *,
    state: Annotated[
        Literal["open", "muted", "resolved", "all"], Parameter(help="In this state; open unless told.")
    ] = "open",
    count: Annotated[int, Parameter(help="How many, the latest first; 50 unless told.")] = 50,
    after: Annotated[str | None, Parameter(help="Go on behind the last page, as it said.")] = None,
    at: Anywhere = STORE,
) -> None:
    """Show incidents, the latest first."""
    wanted = None if state == "all" else state
    async with open_clerk(at) as clerk:
        page = await rows_of(
            lambda limit, after: clerk.incidents.find(wanted, limit=limit, after=after), count=count, after=after
        )
    facts = [_fact(row) for row in page.rows]
    columns = [one for one in _COLUMNS if one.key not in ("assignee", "note") or any(fact[one.key] for fact in facts)]
    empty = "no incidents" if state == "all" else f"no {state} incidents"
    show(facts, columns, as_json=at.json, empty=empty)
    if page.after is not None:
        complain([f"there are more: --after {page.after}"])


@incidents.command(name="show")
async def show_incident(incident_id: IncidentId, /, *, at: Anywhere = STORE) -> None:
    """Show one incident: how it went over time, what its letters have in common, the latest of them."""
    async with open_clerk(at) as clerk:
        found = await clerk.incidents.show(incident_id)
    incident = found.incident
    head = f"incident {incident.incident_id}: {incident.state}, {incident.open:,} open of {incident.total:,}"
    tell_sheet(_whole_fact(found), head, _parts(found, now=datetime.now(UTC)), as_json=at.json)


@incidents.command
async def note(incident_id: IncidentId, text: str, /, *, at: Anywhere = STORE) -> None:
    """Put a note on an incident, for the next person who looks at it."""
    await _change(at, lambda incidents: incidents.note(incident_id, text), said=f"noted on incident {incident_id}")


@incidents.command
async def assign(
    incident_id: IncidentId,
    assignee: Annotated[str, Parameter(help="Who looks after it; '' for nobody.")],
    /,
    *,
    at: Anywhere = STORE,
) -> None:
    """Say who looks after an incident."""
    said = f"assigned incident {incident_id} to {assignee or 'nobody'}"
    await _change(at, lambda incidents: incidents.assign(incident_id, assignee), said=said)


@incidents.command
async def mute(
    incident_id: IncidentId,
    /,
    *,
    ends_in: Annotated[
        str | None, Parameter(help="How long, as in 8h; until it is taken back unless told. A service ends it.")
    ] = None,
    off: Annotated[bool, Parameter(help="Take it back.")] = False,
    at: Anywhere = STORE,
) -> None:
    """Keep counting an incident, but say no more about it."""
    if off and ends_in is not None:
        raise ConfigError("--ends-in: expected none beside --off")
    said = f"incident {incident_id} is {'open again' if off else f'muted for {ends_in}' if ends_in else 'muted'}"

    def change(incidents: Incidents) -> Awaitable[IncidentRow]:
        return incidents.reopen(incident_id) if off else incidents.mute(incident_id, ends_in=ends_in)

    await _change(at, change, said=said)


@incidents.command
async def resolve(incident_id: IncidentId, /, *, at: Anywhere = STORE) -> None:
    """Close an incident; its letters stay as they are, and a new one opens it again."""
    await _change(at, lambda incidents: incidents.resolve(incident_id), said=f"incident {incident_id} is resolved")


async def _change(at: Anywhere, verb: Callable[[Incidents], Awaitable[IncidentRow]], *, said: str) -> None:
    async with open_clerk(at) as clerk:
        row = await verb(clerk.incidents)
    tell(_fact(row), said, as_json=at.json)


def _fact(row: IncidentRow) -> dict[str, Any]:
    short = row.error_type.rpartition(".")[2]
    error = f"{short}: {row.error_message}" if row.error_message else short
    hours = [[hour.isoformat(), number] for hour, number in row.hours]
    return {**asdict(row), "hours": hours, "error": preview(error.encode("utf-8", "surrogatepass"), width=100)}


def _whole_fact(found: "Shown") -> dict[str, Any]:
    return {
        **_fact(found.incident),
        "alike": [asdict(one) for one in found.alike],
        "latest": [row.letter_id for row in found.latest],
    }


def _parts(found: "Shown", *, now: datetime) -> Iterator[Part]:
    incident = found.incident
    error = f"{incident.error_type}: {incident.error_message}" if incident.error_message else incident.error_type
    facts = {
        "error": error,
        "queues": ", ".join(incident.queues),
        "first": f"{incident.first_at:%Y-%m-%d %H:%M:%S}Z, {age(incident.first_at, now=now)} ago",
        "last": f"{incident.last_at:%Y-%m-%d %H:%M:%S}Z, {age(incident.last_at, now=now)} ago",
        f"last {HOURS} h": trend(incident.hours, now=now),
        "assignee": incident.assignee,
        "note": incident.note,
    }
    yield Part("what happens", [(name, text) for name, text in facts.items() if text])
    looked_at = found.alike[0].of if found.alike else 0
    yield Part(f"in common, of the latest {looked_at}", [(one.field, _shared(one)) for one in found.alike])
    yield Part(
        "latest letters",
        [
            (row.letter_id[:SHORT], f"{row.life.state}, {age(row.failed_at, now=now)} ago")
            for row in found.latest[:LATEST]
        ],
    )
    if found.sample is not None and found.sample.payload:
        from redrive.cli.letter_view import readable

        yield Part("a payload", block(readable(found.sample.payload), most=12))
    if incident.open:
        yield Part("what next", [("", line) for line in _next(found)])


def _shared(one: Likeness) -> str:
    return one.value if one.count == one.of else f"{one.value}   ({one.count} of {one.of})"


def _next(found: "Shown") -> Iterator[str]:
    if found.latest:
        yield f"redrive letters show {found.latest[0].letter_id[:SHORT]}"
    yield f"redrive letters redrive --incident {found.incident.incident_id} --canary 1,5,25"


def trend(hours: Sequence[tuple[datetime, int]], *, now: datetime) -> str:
    """Deaths per hour over the last day as a row of bars, the present hour last; empty if there were none."""
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    counts = dict(hours)
    row = [counts.get(this_hour - timedelta(hours=back), 0) for back in reversed(range(HOURS))]
    most = max(row)
    if not most:
        return ""
    return "".join("·" if not number else _BARS[(number * len(_BARS) - 1) // most] for number in row)
