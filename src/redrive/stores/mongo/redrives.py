"""The record of redrives."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.redrive import Planned, Progress, Redrive, RedriveState, Target
from redrive.core.stored import Claimed, Page
from redrive.stores.cursor import number_of, page_of
from redrive.stores.exact import from_json, instant, microseconds, to_json, unescaped
from redrive.stores.marking import marked
from redrive.stores.mongo import auditing, claiming, items
from redrive.stores.mongo.documents import Document
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import DOWN, REDRIVES, UP, Shelves
from redrive.stores.mongo.values import from_maybe, from_word, to_text, to_word

_JSON = ("steps", "targets", "failed_on")
_INSTANTS = ("created_at", "ended_at")
_TEXTS = ("redrive_id", "by", "selection", "to", "target_queue", "confirm", "state", "why")
_APART = ("report_within", *_JSON, *_INSTANTS, *_TEXTS)
_PLAIN = [field.name for field in fields(Redrive) if field.name not in _APART]


async def plan(draft: Draft, redrive_id: str, chosen: Sequence[Planned], *, place: int) -> None:
    """Write a part of a selection, before its redrive is there to be seen."""
    if await _found(draft.shelves, redrive_id) is None:
        await items.plan(draft, redrive_id, chosen, place=place)


async def create(draft: Draft, planned: Redrive, *, count: int, act: Act, owner: str, until: datetime | None) -> None:
    """Let a redrive begin, its selection written; one that is there already stays as it is."""
    if await _found(draft.shelves, planned.redrive_id) is not None:
        return
    number = draft.next_numbers("redrive", 1)
    own = {"operation_id": to_text(act.operation_id), "owner": to_text(owner), "owned_until": microseconds(until)}
    draft.add(REDRIVES, {"_id": number, **_to_document(planned), **own})
    await auditing.record(draft, act, (), count=count)


async def one(shelves: Shelves, redrive_id: str) -> Redrive:
    """One redrive. Raises `LetterNotFound`."""
    return _to_redrive(await _document(shelves, redrive_id))


async def latest(shelves: Shelves, *, limit: int, after: str | None) -> Page[Redrive]:
    """Redrives, the latest first."""
    below = number_of(after)
    where = {} if below is None else {"_id": {"$lt": below}}
    found = await shelves.many(REDRIVES, where, order=[("_id", DOWN)], limit=limit + 1)
    page = page_of(found, limit=limit, after=lambda document: str(document["_id"]))
    return Page([_to_redrive(document) for document in page.rows], page.after)


async def unfinished(shelves: Shelves) -> list[Redrive]:
    """Redrives that are running, oldest first."""
    found = await shelves.many(REDRIVES, {"state": RedriveState.RUNNING.value}, order=[("_id", UP)])
    return [_to_redrive(document) for document in found]


async def claim(draft: Draft, redrive_id: str, *, step: int, limit: int, now: datetime) -> list[Claimed]:
    """Claim letters of a step."""
    document = await _document(draft.shelves, redrive_id)
    operation_id = unescaped(document["operation_id"])
    return await claiming.claim(
        draft, _to_redrive(document), step=step, limit=limit, operation_id=operation_id, now=now
    )


async def take(draft: Draft, redrive_id: str, *, owner: str, now: datetime, until: datetime) -> bool:
    """Be the one redriver until then."""
    document = await _document(draft.shelves, redrive_id)
    held_until = from_maybe(document["owned_until"])
    if unescaped(document["owner"]) != owner and held_until is not None and held_until > now:
        return False
    draft.set(REDRIVES, document["_id"], {"owner": to_text(owner), "owned_until": microseconds(until)})
    return True


async def sent(draft: Draft, redrive_id: str, messages: Mapping[str, str], *, at: datetime) -> None:
    """Record what was published."""
    await _document(draft.shelves, redrive_id)
    await items.record_sent(draft, redrive_id, messages, at=at)


async def progress(shelves: Shelves, redrive_id: str) -> Progress:
    """Items by status and step."""
    return await items.progress(shelves, redrive_id, steps=len((await one(shelves, redrive_id)).steps) + 1)


async def expire_some(draft: Draft, redrive_id: str, *, before: datetime, quiet: bool) -> int:
    """Give up waiting for those sent before then, at most a thousand."""
    await _document(draft.shelves, redrive_id)
    return await items.expire_some(draft, redrive_id, before=before, quiet=quiet)


async def mark(
    draft: Draft, redrive_id: str, state: RedriveState, *, why: str, act: Act, accepted: int | None
) -> Redrive:
    """Pause, resume, stop, cancel or end; what is left over at the end is not touched here."""
    document = await _document(draft.shelves, redrive_id)
    before = _to_redrive(document)
    after = marked(before, state, why=why, at=act.at, accepted=accepted)
    if after != before:
        draft.set(REDRIVES, document["_id"], _to_document(after))
    if after.state is not before.state:
        told = {"redrive": redrive_id, "state": [before.state.value, state.value], "why": why}
        await auditing.record(draft, replace(act, detail=act.detail | told), (), count=before.total)
    return after


async def _found(shelves: Shelves, redrive_id: str) -> Document | None:
    return await shelves.one(REDRIVES, {"redrive_id": to_text(redrive_id)})


async def _document(shelves: Shelves, redrive_id: str) -> Document:
    found = await _found(shelves, redrive_id)
    if found is None:
        raise LetterNotFound(f"no redrive {redrive_id!r} is in the store")
    return found


def _to_document(redrive: Redrive) -> Document:
    return {
        **{name: getattr(redrive, name) for name in _PLAIN},
        **{name: to_word(getattr(redrive, name)) for name in _TEXTS},
        **{name: microseconds(getattr(redrive, name)) for name in _INSTANTS},
        **{name: to_json(getattr(redrive, name)) for name in _JSON},
        "report_within": redrive.report_within.total_seconds(),
    }


def _to_redrive(document: Mapping[str, Any]) -> Redrive:
    values: dict[str, Any] = {name: document[name] for name in _PLAIN}
    values |= {name: from_word(document[name]) for name in _TEXTS}
    return Redrive(
        **values
        | {
            "state": RedriveState(document["state"]),
            "created_at": instant(document["created_at"]),
            "ended_at": from_maybe(document["ended_at"]),
            "report_within": timedelta(seconds=document["report_within"]),
            "steps": tuple(from_json(document["steps"])),
            "targets": tuple(Target(*target) for target in from_json(document["targets"])),
            "failed_on": tuple(from_json(document["failed_on"])),
        }
    )
