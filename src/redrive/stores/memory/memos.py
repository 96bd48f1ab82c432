"""Memos in memory."""

from datetime import datetime

from redrive.stores.memory.shelf import Shelf


class MemoryMemos:
    """A `MemoBook`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def take_memo(self, name: str, *, owner: str, now: datetime, until: datetime) -> bytes | None:
        holder, held_until, body = self._shelf.memos.get(name, (owner, until, b""))
        if holder != owner and held_until > now:
            return None
        self._shelf.memos[name] = owner, until, body
        return body

    async def write_memo(self, name: str, body: bytes, *, owner: str) -> bool:
        holder, held_until, _ = self._shelf.memos.get(name, ("", None, b""))
        if holder != owner or held_until is None:
            return False
        self._shelf.memos[name] = owner, held_until, body
        return True
