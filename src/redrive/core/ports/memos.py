"""The port for what a process leaves to whoever does its work next."""

from datetime import datetime
from typing import Protocol


class MemoBook(Protocol):
    """Memos, each by its name and in the hands of one process at a time. They are nobody's letters, and not audited."""

    async def take_memo(self, name: str, *, owner: str, now: datetime, until: datetime) -> bytes | None:
        """Have this memo in hand until then: what stands in it, nothing at first. None if another one has it.

        Taken again by the same owner it is renewed, or given up with an `until` that has passed.
        """
        ...

    async def write_memo(self, name: str, body: bytes, *, owner: str) -> bool:
        """Write this instead of what stands in it; False, and nothing is written, if another one took it last."""
        ...
