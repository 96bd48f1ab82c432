"""The audit, at a store."""

from redrive.cli.at_store.cursor import asked
from redrive.core.audit import AuditRecord
from redrive.core.stored import Page
from redrive.triage import audit
from redrive.triage.desk import Desk


class AuditHere:
    """`clerk.Audit` at a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def find(self, letter_id: str | None, *, limit: int, after: str | None = None) -> Page[AuditRecord]:
        return await asked(audit.find(self._desk, letter_id=letter_id, limit=limit, after=after))

    async def verify(self) -> AuditRecord | None:
        return await audit.verify(self._desk)
