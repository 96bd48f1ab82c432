"""Incidents over HTTP: letters that failed the same way, looked at and looked after together."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from redrive.api.auth import PermittedRoute, allowed
from redrive.api.pages import LINKED, USUAL, After, Limit, asked, link_next
from redrive.core.stored import IncidentRow
from redrive.door.filters import NO_NUL, Length
from redrive.triage import incidents as verbs
from redrive.triage.desk import Desk
from redrive.triage.incidents import NAME, NOTE
from redrive.triage.masking import masked_field, masked_text

router = APIRouter(prefix="/incidents", tags=["incidents"], route_class=PermittedRoute)

IncidentId = Annotated[str, Path(max_length=1024, pattern=NO_NUL, description="The incident's id.")]


_INCIDENT: dict[str, Any] = {
    "incident_id": "0123456789abcdef",
    "state": "open",
    "error_type": "KeyError",
    "error_message": "'customer'",
    "open": 1000,
    "total": 1200,
    "first_at": "2026-01-30T22:14:07Z",
    "last_at": "2026-01-31T08:00:00Z",
    "queues": ["orders"],
    "note": "",
    "assignee": "sam",
    "relapses": 0,
    "muted_until": None,
}


class Incident(BaseModel):
    """Letters that failed the same way. `open` are those that are neither resolved nor discarded."""

    model_config = ConfigDict(json_schema_extra={"example": _INCIDENT})

    incident_id: str
    state: str = Field(description="open, muted or resolved.")
    error_type: str
    error_message: str
    open: int
    total: int
    first_at: datetime
    last_at: datetime
    queues: list[str]
    note: str
    assignee: str
    relapses: int = Field(description="How often it was opened again after it was resolved.")
    muted_until: datetime | None = Field(description="When a mute ends by itself, if it does.")


class DeathsInHour(BaseModel):
    """How many letters died in an hour."""

    at: datetime
    deaths: int


class Shared(BaseModel):
    """A thing that most of the latest letters have in common; secrets and personal data are masked."""

    field: str
    value: str
    count: int
    of: int


class WholeIncident(Incident):
    """An incident, how it went, and what its latest letters have in common."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                **_INCIDENT,
                "hours": [{"at": "2026-01-31T07:00:00Z", "deaths": 412}],
                "alike": [{"field": "payload.currency", "value": "CHF", "count": 50, "of": 50}],
                "latest": ["5f2b8c0d9e1a4736b8c0d9e1a4736f2b"],
            }
        }
    )

    hours: list[DeathsInHour]
    alike: list[Shared]
    latest: list[str] = Field(description="The ids of its latest letters, newest first.")


class Note(BaseModel):
    """A note; an empty one takes it away."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"text": "the bank changed its API"}})

    text: str = Field(max_length=NOTE, pattern=NO_NUL)


class Assignee(BaseModel):
    """Who looks after it; nobody if empty."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"assignee": "sam"}})

    assignee: str = Field(max_length=NAME, pattern=NO_NUL)


class Mute(BaseModel):
    """For how long; until somebody takes it back unless told."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"ends_in": "8h"}})

    ends_in: Length | None = Field(None, description="How long it lasts: seconds, or as in 8h.")


@router.get("", responses=LINKED)
async def list_incidents(
    request: Request,
    response: Response,
    desk: Annotated[Desk, Depends(allowed("read"))],
    *,
    state: Annotated[Literal["open", "muted", "resolved", "all"], Query()] = "open",
    limit: Limit = USUAL,
    after: After = None,
) -> list[Incident]:
    """Incidents in a state, the latest first."""
    page = await asked(verbs.find(desk, state=None if state == "all" else state, limit=limit, after=after))
    link_next(request, response, page.after)
    return [Incident.model_validate(_facts(row)) for row in page.rows]


@router.get("/{incident_id}")
async def show_incident(incident_id: IncidentId, desk: Annotated[Desk, Depends(allowed("read"))]) -> WholeIncident:
    """One incident: how it went over time, what its letters have in common, the latest of them."""
    found = await verbs.show(desk, incident_id)
    return WholeIncident.model_validate(
        {
            **_facts(found.incident),
            "hours": [{"at": at, "deaths": deaths} for at, deaths in found.incident.hours],
            "alike": [
                Shared(field=one.field, value=masked_field(one.field, one.value), count=one.count, of=one.of)
                for one in found.alike
            ],
            "latest": [row.letter_id for row in found.latest],
        }
    )


@router.post("/{incident_id}/note")
async def note(incident_id: IncidentId, note: Note, desk: Annotated[Desk, Depends(allowed("note"))]) -> Incident:
    """Put a note on an incident, instead of the one it has."""
    return _answer(await verbs.note(desk, incident_id, note.text))


@router.post("/{incident_id}/assign")
async def assign(incident_id: IncidentId, to: Assignee, desk: Annotated[Desk, Depends(allowed("assign"))]) -> Incident:
    """Say who looks after an incident."""
    return _answer(await verbs.assign(desk, incident_id, to.assignee))


@router.post("/{incident_id}/mute")
async def mute(
    incident_id: IncidentId, desk: Annotated[Desk, Depends(allowed("mute"))], mute: Mute | None = None
) -> Incident:
    """Keep counting an incident, but say no more about it: for a time, or until somebody takes it back."""
    return _answer(await verbs.mute(desk, incident_id, ends_in=None if mute is None else mute.ends_in))


@router.post("/{incident_id}/resolve")
async def resolve(incident_id: IncidentId, desk: Annotated[Desk, Depends(allowed("resolve"))]) -> Incident:
    """Close an incident; its letters stay as they are, and a new one opens it again."""
    return _answer(await verbs.resolve(desk, incident_id))


@router.post("/{incident_id}/reopen")
async def reopen(incident_id: IncidentId, desk: Annotated[Desk, Depends(allowed("resolve"))]) -> Incident:
    """Take back a mute or a resolve."""
    return _answer(await verbs.reopen(desk, incident_id))


def _answer(row: IncidentRow) -> Incident:
    return Incident.model_validate(_facts(row))


def _facts(row: IncidentRow) -> dict[str, Any]:
    facts = {name: getattr(row, name) for name in Incident.model_fields}
    return {**facts, **{name: masked_text(facts[name]) for name in ("error_type", "error_message")}}
