"""Incidents: what fails, the latest first."""

from dataclasses import replace

from starlette.responses import Response

from redrive.console.clip import line, masked_line
from redrive.console.fields import after_in, listed
from redrive.console.visit import Visit, page
from redrive.core.errors import ConfigError
from redrive.core.stored import INCIDENT_STATES, IncidentRow
from redrive.triage import incidents as verbs

_STATES = (*INCIDENT_STATES, "all")
_MESSAGE = 400  # bytes of an error, or of a note, that a row shows
_QUEUES = 3
_ID = 64  # characters of an id that is linked; ours have 16, a stranger's may have none or any number


@page("/incidents", "incidents")
async def _list(visit: Visit) -> Response:
    given = visit.request.query_params
    state = given.get("state") or "open"
    if state not in _STATES:
        raise ConfigError(f"state: expected one of {', '.join(_STATES)}, got {state!r}")
    wanted = None if state == "all" else state
    found = await listed(verbs.find(visit.desk, state=wanted, after=after_in(given)))
    return visit.render(
        "incidents.html",
        states=_STATES,
        state=state,
        rows=[shown(row) for row in found.rows],
        notes={row.incident_id: line(row.note, _MESSAGE) for row in found.rows},
        longest_id=_ID,
        queues_shown=_QUEUES,
        days=await verbs.last_day(visit.desk, found.rows),
        older=visit.url("incidents", {"state": state, "after": found.after}) if found.after else "",
        is_first=not given.get("after"),
    )


def shown(row: IncidentRow, *, most: int = _MESSAGE) -> IncidentRow:
    """An incident as everybody may see it, its error in a line of at most so many bytes."""
    return replace(
        row,
        error_type=masked_line(row.error_type, most),
        error_message=masked_line(row.error_message, most),
    )


routes = [_list]
