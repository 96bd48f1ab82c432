"""Memos: what a process leaves to whoever does its work next."""

from datetime import datetime

from redrive.stores.exact import instant, microseconds, unescaped
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import MEMOS
from redrive.stores.mongo.values import to_text


async def take(draft: Draft, name: str, *, owner: str, now: datetime, until: datetime) -> bytes | None:
    """Have a memo in hand until then; what stands in it."""
    held = {"owner": to_text(owner), "owned_until": microseconds(until)}
    found = await draft.shelves.one(MEMOS, {"_id": to_text(name)})
    if found is None:
        draft.add(MEMOS, {"_id": to_text(name), **held, "body": b""})
        return b""
    if unescaped(found["owner"]) != owner and instant(found["owned_until"]) > now:
        return None
    draft.set(MEMOS, found["_id"], held)
    return bytes(found["body"])


async def write(draft: Draft, name: str, body: bytes, *, owner: str) -> bool:
    """Write this in a memo that is in hand."""
    found = await draft.shelves.one(MEMOS, {"_id": to_text(name)}, fields={"owner": 1})
    if found is None or unescaped(found["owner"]) != owner:
        return False
    draft.set(MEMOS, found["_id"], {"body": body})
    return True
