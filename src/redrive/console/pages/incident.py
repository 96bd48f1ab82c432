"""One incident: the failure as people read it, how it went, what its letters have in common, what to do about it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from starlette.responses import Response

from redrive.console.charts import Bar
from redrive.console.clip import clip, line
from redrive.console.fields import text_in
from redrive.console.hours import Course, course_of
from redrive.console.letter_lines import seen_row
from redrive.console.pages.incidents import shown
from redrive.console.render import FRAGMENT
from redrive.console.visit import Visit, act, page
from redrive.console.words import exact
from redrive.core.life import LetterState
from redrive.core.likeness import Likeness
from redrive.core.query import Query
from redrive.core.stored import Count, IncidentRow
from redrive.triage import incidents as verbs
from redrive.triage import letters
from redrive.triage.desk import Desk
from redrive.triage.masking import masked_field, masked_text

_MESSAGE = 8 * 1024
_STACK = 24 * 1024  # bytes; its own limit is 16 KiB, that of a stranger's none
_LATEST = 10
_ALIKE = 30
MUTES = (
    ("", "until reopened"),
    ("1h", "for an hour"),
    ("8h", "for 8 hours"),
    ("1d", "for a day"),
    ("7d", "for a week"),
)
_LINK = 400  # characters; a chart of many bars with longer addresses would be heavy


@page("/incidents/{incident_id}", "incident")
async def _show(visit: Visit) -> Response:
    incident_id = visit.part("incident_id")
    if FRAGMENT in visit.request.headers:
        return visit.render("incident.html", **_course(visit, await verbs.look(visit.desk, incident_id)))
    found = await verbs.show(visit.desk, incident_id)
    incident = found.incident
    sample = found.sample
    return visit.render(
        "incident.html",
        **_course(visit, incident),
        stack=clip(masked_text((sample.stack or "")[: 2 * _STACK]) if sample else "", _STACK),
        alike=[_masked(one) for one in found.alike[:_ALIKE]],
        latest=[seen_row(row) for row in found.latest[:_LATEST]],
        **await _counts(visit.desk, incident),
        longest_note=verbs.NOTE,
        longest_name=verbs.NAME,
        mutes=MUTES,
    )


def _course(visit: Visit, incident: IncidentRow) -> dict[str, Any]:
    course = course_of(incident.hours, now=visit.now)
    peak = max(incident.hours, key=lambda hour: hour[1], default=None)
    return {
        "incident": shown(incident, most=_MESSAGE),
        "kind": line(masked_text(incident.error_type[:_MESSAGE]).rpartition(".")[2]),
        "chart": _bars(visit, incident, course),
        "step": _STEPS.get(course.step, f"{course.step.days} days"),
        "earlier": course.earlier,
        "peak": peak,
        "deaths": sum(number for _, number in incident.hours),
    }


_STEPS = {
    timedelta(hours=1): "hour",
    timedelta(days=1): "day",
    timedelta(days=7): "week",
    timedelta(hours=6): "6 hours",
}


def _bars(visit: Visit, incident: IncidentRow, course: Course) -> Sequence[Bar]:
    def letters_of(begin: str, end: str) -> str:
        address = visit.url("letters", {"fingerprint": incident.fingerprint, "from": begin, "to": end})
        return address if len(address) <= _LINK else ""

    return [
        Bar(
            span.at,
            span.deaths,
            letters_of(f"{span.at:%Y-%m-%dT%H:%M:%SZ}", f"{span.at + course.step:%Y-%m-%dT%H:%M:%SZ}"),
        )
        for span in course.spans
    ]


def _masked(one: Likeness) -> Likeness:
    return Likeness(one.field, masked_field(one.field, one.value), one.count, one.of)


async def _counts(desk: Desk, incident: IncidentRow) -> dict[str, Any]:
    """How many of its letters can be discarded, and how many of these sent back: all but the parked ones."""
    ours = Query(fingerprint=incident.fingerprint)
    out, parked = [
        await letters.count(desk, replace(ours, states=(state,)))
        for state in (LetterState.REDRIVING, LetterState.PARKED)
    ]
    unsettled = Count(max(incident.open - out.number, 0))  # the store keeps count of all, and few are out or parked
    if out.capped:
        unsettled = await letters.count(desk, replace(ours, states=letters.UNSETTLED))
    movable = Count(max(unsettled.number - parked.number, 0), unsettled.capped or parked.capped)
    return {"unsettled": unsettled, "movable": movable}


@act("/incidents/{incident_id}/note", "incident_note", may="note")
async def _note(visit: Visit) -> Response:
    text = text_in(visit.form, "text", most=verbs.NOTE)
    await verbs.note(visit.desk, visit.part("incident_id"), text)
    return _back(visit, "Noted." if text else "The note is gone.")


@act("/incidents/{incident_id}/assign", "incident_assign", may="assign")
async def _assign(visit: Visit) -> Response:
    name = visit.caller.name if "me" in visit.form else text_in(visit.form, "assignee", most=verbs.NAME)
    await verbs.assign(visit.desk, visit.part("incident_id"), name)
    return _back(visit, f"{name} looks after it." if name else "Nobody looks after it now.")


@act("/incidents/{incident_id}/mute", "incident_mute", may="mute")
async def _mute(visit: Visit) -> Response:
    ends_in = text_in(visit.form, "ends_in")
    row = await verbs.mute(visit.desk, visit.part("incident_id"), ends_in=ends_in or None)
    until = "" if row.muted_until is None else f" until {exact(row.muted_until)}"
    return _back(visit, f"Muted{until}: it is counted, and nobody is told about it.")


def _turn(verb: str, change: Callable[[Desk, str], Awaitable[IncidentRow]], *, may: str, said: str) -> Any:
    @act(f"/incidents/{{incident_id}}/{verb}", f"incident_{verb}", may=may)
    async def turn(visit: Visit) -> Response:
        await change(visit.desk, visit.part("incident_id"))
        return _back(visit, said)

    return turn


def _back(visit: Visit, said: str) -> Response:
    if visit.form.get("back") == "incidents":
        return visit.go(visit.url("incidents"), said=said)
    return visit.go(visit.url("incident", incident_id=visit.part("incident_id")), said=said)


routes = [
    _show,
    _note,
    _assign,
    _mute,
    _turn("resolve", verbs.resolve, may="resolve", said="Resolved. A new letter opens it again."),
    _turn("reopen", verbs.reopen, may="resolve", said="Open again."),
]
