"""The audit: who did what, and whether the record still holds."""

from redrive.core.audit import AuditRecord
from redrive.core.stored import Page
from redrive.triage.desk import Desk


async def find(
    desk: Desk, *, letter_id: str | None = None, limit: int = 50, after: str | None = None
) -> Page[AuditRecord]:
    """A page of records, the latest first."""
    return await desk.store.records(limit=limit, after=after, letter_id=letter_id)


async def verify(desk: Desk) -> AuditRecord | None:
    """The first record that does not follow from those before it; None if the chain holds."""
    return await desk.store.verify()
