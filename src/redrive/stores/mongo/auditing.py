"""The audit: append-only, each record chained to the one before."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from redrive.core.audit import Act, AuditRecord, chained
from redrive.core.stored import Page
from redrive.stores.cursor import number_of, page_of
from redrive.stores.exact import from_json, instant, microseconds, to_json, unescaped
from redrive.stores.mongo import edits
from redrive.stores.mongo.documents import Document
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import AUDIT, DOWN, UP, Shelves
from redrive.stores.mongo.values import to_text
from redrive.stores.witness import Link, Touched, records_of

_APART = ("seq", "at", "count", "detail")
_TEXTS = [field.name for field in fields(AuditRecord) if field.name not in _APART]
_PAGE = 1000


async def record(draft: Draft, act: Act, touched: Sequence[Touched], *, count: int | None = None) -> None:
    """Write the audit of an act: its operation once, and each letter. Once in a call."""
    operation = {"operation_id": to_text(act.operation_id), "letter_id": ""}
    known = await draft.shelves.one(AUDIT, operation, fields={"_id": 1}) is not None
    total = act.count if act.count is not None else len(touched) if count is None else count
    records = [*records_of(act, touched, behind=await _end(draft), count=None if known else total)]
    draft.next_numbers("audit", len(records))
    for one in records:
        draft.add(AUDIT, _to_document(one))


async def _end(draft: Draft) -> Link:
    last = draft.numbers.get("audit", 0)
    found = await draft.shelves.one(AUDIT, {"_id": last}, fields={"hash": 1})
    return Link(last, "" if found is None else found["hash"])


async def record_unchanged(draft: Draft, act: Act, letter_ids: Sequence[str]) -> None:
    """Write the audit of an act that changes nothing."""
    hashes = await edits.sent_hashes(draft.shelves, letter_ids)
    named = {name: hashes.get(name, "") for name in letter_ids}
    await record(draft, act, [Touched(name, hashed, hashed) for name, hashed in named.items()])


async def records(shelves: Shelves, *, limit: int, after: str | None, letter_id: str | None) -> Page[AuditRecord]:
    """Records, the latest first."""
    below = number_of(after)
    where: Document = {} if below is None else {"_id": {"$lt": below}}
    if letter_id is not None:
        where["letter_id"] = to_text(letter_id)
    found = await shelves.many(AUDIT, where, order=[("_id", DOWN)], limit=limit + 1)
    return page_of([*map(_to_record, found)], limit=limit, after=lambda one: str(one.seq))


async def verify(shelves: Shelves) -> AuditRecord | None:
    """The first record that does not follow from those before it."""
    previous = ""
    async for one in _all(shelves):
        if one.previous_hash != previous or one.hash != chained(one, previous_hash=previous):
            return one
        previous = one.hash
    return None


async def _all(shelves: Shelves) -> AsyncIterator[AuditRecord]:
    last = -1
    while found := await shelves.many(AUDIT, {"_id": {"$gt": last}}, order=[("_id", UP)], limit=_PAGE):
        for document in found:
            yield _to_record(document)
        last = found[-1]["_id"]


def _to_document(one: AuditRecord) -> Document:
    said = {name: to_text(getattr(one, name)) for name in _TEXTS}
    return {"_id": one.seq, "at": microseconds(one.at), "count": one.count, "detail": to_json(one.detail), **said}


def _to_record(document: Mapping[str, Any]) -> AuditRecord:
    said = {name: unescaped(document[name]) for name in _TEXTS}
    at, detail = instant(document["at"]), from_json(document["detail"])
    return AuditRecord(seq=document["_id"], at=at, count=document["count"], detail=detail, **said)
