"""Incidents, at a service."""

from typing import Any
from urllib.parse import quote

from msgspec import convert

from redrive.cli.at_service import reading
from redrive.cli.at_service.client import Client, flags_named
from redrive.cli.at_service.letters import LettersThere
from redrive.core.errors import LetterNotFound
from redrive.core.likeness import Likeness
from redrive.core.query import Query
from redrive.core.stored import IncidentRow, Page
from redrive.triage.incidents import LOOKED_AT, Shown


class IncidentsThere:
    """`clerk.Incidents` at a service."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._letters = LettersThere(client)

    async def find(self, state: str | None, *, limit: int, after: str | None = None) -> Page[IncidentRow]:
        with flags_named():
            return await self._client.page(
                "/incidents", {"state": state or "all"}, limit=limit, after=after, read=reading.incident_row
            )

    async def show(self, incident_id: str) -> Shown:
        incident, alike = await self._client.get(_path(incident_id), read=_whole)
        latest = (await self._letters.find(Query(fingerprint=incident_id), limit=LOOKED_AT)).rows
        sample = None
        for row in latest:
            try:
                sample = (await self._letters.show(row.letter_id)).stored.letter
            except LetterNotFound:  # gone meanwhile
                continue
            break
        return Shown(incident, latest, alike, sample)

    async def note(self, incident_id: str, text: str) -> IncidentRow:
        return await self._change(incident_id, "note", {"text": text})

    async def assign(self, incident_id: str, assignee: str) -> IncidentRow:
        return await self._change(incident_id, "assign", {"assignee": assignee})

    async def mute(self, incident_id: str, *, ends_in: str | None = None) -> IncidentRow:
        return await self._change(incident_id, "mute", None if ends_in is None else {"ends_in": ends_in})

    async def reopen(self, incident_id: str) -> IncidentRow:
        return await self._change(incident_id, "reopen")

    async def resolve(self, incident_id: str) -> IncidentRow:
        return await self._change(incident_id, "resolve")

    async def _change(self, incident_id: str, verb: str, document: dict[str, Any] | None = None) -> IncidentRow:
        return await self._client.post(f"{_path(incident_id)}/{verb}", document, read=reading.incident_row)


def _path(incident_id: str) -> str:
    return f"/incidents/{quote(incident_id, safe='')}"


def _whole(said: reading.Said) -> tuple[IncidentRow, list[Likeness]]:
    return reading.incident_row(said), convert(said["alike"], list[Likeness])
