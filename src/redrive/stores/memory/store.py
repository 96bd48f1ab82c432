"""The whole store in memory."""

from collections.abc import Sequence

from redrive.core.audit import Act, AuditRecord, first_broken
from redrive.core.ports import Clock
from redrive.core.stored import Page
from redrive.stores.cursor import number_of, page_of
from redrive.stores.memory.letters import MemoryLetters
from redrive.stores.memory.memos import MemoryMemos
from redrive.stores.memory.redrives import MemoryRedrives
from redrive.stores.memory.shelf import Shelf
from redrive.stores.memory.tokens import MemoryTokens
from redrive.stores.witness import Touched


class MemoryStore(MemoryLetters, MemoryRedrives, MemoryTokens, MemoryMemos):
    """A `Store` that is gone with its process."""

    def __init__(self, *, clock: Clock) -> None:
        shelf = Shelf()
        MemoryLetters.__init__(self, shelf)
        MemoryRedrives.__init__(self, shelf, clock=clock)
        MemoryTokens.__init__(self, shelf)
        MemoryMemos.__init__(self, shelf)

    async def record(self, act: Act, *, letter_ids: Sequence[str] = ()) -> None:
        kept = {name: self._shelf.letters.get(name) for name in letter_ids}
        hashes = {name: "" if one is None else one.sent_sha256() for name, one in kept.items()}
        self._shelf.record(act, [Touched(name, hashed, hashed) for name, hashed in hashes.items()])

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
