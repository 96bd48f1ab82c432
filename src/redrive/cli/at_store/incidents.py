"""Incidents, at a store."""

from redrive.cli.at_store.cursor import asked
from redrive.core.stored import IncidentRow, Page
from redrive.triage import incidents
from redrive.triage.desk import Desk
from redrive.triage.incidents import Shown


class IncidentsHere:
    """`clerk.Incidents` at a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def find(self, state: str | None, *, limit: int, after: str | None = None) -> Page[IncidentRow]:
        return await asked(incidents.find(self._desk, state=state, limit=limit, after=after))

    async def show(self, incident_id: str) -> Shown:
        return await incidents.show(self._desk, incident_id)

    async def note(self, incident_id: str, text: str) -> IncidentRow:
        return await incidents.note(self._desk, incident_id, text)

    async def assign(self, incident_id: str, assignee: str) -> IncidentRow:
        return await incidents.assign(self._desk, incident_id, assignee)

    async def mute(self, incident_id: str, *, ends_in: str | None = None) -> IncidentRow:
        return await incidents.mute(self._desk, incident_id, ends_in=ends_in)

    async def reopen(self, incident_id: str) -> IncidentRow:
        return await incidents.reopen(self._desk, incident_id)

    async def resolve(self, incident_id: str) -> IncidentRow:
        return await incidents.resolve(self._desk, incident_id)
