"""The whole store in memory."""

from redrive.core.audit import AuditRecord, first_broken
from redrive.core.ports import Clock
from redrive.core.ports.store import Page
from redrive.stores.cursor import number_of, page_of
from redrive.stores.memory.letters import MemoryLetters
from redrive.stores.memory.redrives import MemoryRedrives
from redrive.stores.memory.shelf import Shelf


class MemoryStore(MemoryLetters, MemoryRedrives):
    """A `Store` that is gone with its process."""

    def __init__(self, *, clock: Clock) -> None:
        shelf = Shelf()
        MemoryLetters.__init__(self, shelf)
        MemoryRedrives.__init__(self, shelf, clock=clock)

    async def records(
        self, *, limit: int = 50, after: str | None = None, letter_id: str | None = None
    ) -> Page[AuditRecord]:
        below = number_of(after)
        left = [
            record
            for record in reversed(self._shelf.audit)
            if letter_id in (None, record.letter_id) and (below is None or record.seq < below)
        ]
        return page_of(left, limit=limit, after=lambda record: str(record.seq))

    async def verify(self) -> AuditRecord | None:
        return first_broken(self._shelf.audit)
