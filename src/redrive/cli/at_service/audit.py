"""The audit, at a service."""

from msgspec import convert

from redrive.cli.at_service.client import Client, flags_named
from redrive.cli.at_service.reading import Said
from redrive.core.audit import AuditRecord
from redrive.core.stored import Page


class AuditThere:
    """`clerk.Audit` at a service."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def find(self, letter_id: str | None, *, limit: int, after: str | None = None) -> Page[AuditRecord]:
        with flags_named():
            return await self._client.page("/audit", {"letter_id": letter_id}, limit=limit, after=after, read=_record)

    async def verify(self) -> AuditRecord | None:
        return await self._client.get("/audit/verify", read=_broken)


def _record(said: Said) -> AuditRecord:
    return convert(said, AuditRecord)


def _broken(said: Said) -> AuditRecord | None:
    return None if said["holds"] else _record(said["broken"])
