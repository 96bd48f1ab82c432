"""Dead letters as the messages of a DLQ, in the seed's shapes: list, look, count, retry, delete."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from redrive.api import examples
from redrive.api.auth import CallerOf, PermittedRoute, ServiceOf, allowed
from redrive.api.examples import shown
from redrive.api.pages import LARGEST, LINKED, LOOKS, USUAL, Cursor, asked, link_next
from redrive.api.payload import View
from redrive.api.problems import BadRequest
from redrive.api.schema import DlqMessage, DlqMessageWhole, message_of, whole_message_of
from redrive.core.errors import DeadLetterError
from redrive.core.life import LetterState
from redrive.core.query import Query as LetterQuery
from redrive.core.stored import Page, StoredLetter
from redrive.door.filters import NO_NUL, LetterFilter, Word
from redrive.triage import audit, letters, masking
from redrive.triage.desk import Desk
from redrive.triage.retry import retry
from redrive.triage.selection import in_words

router = APIRouter(prefix="/dlq", tags=["dlq"], route_class=PermittedRoute)

_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")

MessageId = Annotated[
    str, Path(max_length=1024, pattern=NO_NUL, description="The letter's id, or the id of its entry in the DLQ.")
]
OfQueue = Annotated[Word | None, Query(description="The queue it came from; needed if an entry's id is ambiguous.")]
Reveal = Annotated[bool, Query(description="Unmasked; needs the permission reveal, and goes on record.")]


class Messages(LetterFilter):
    """Which messages, and which page of them. Without `state` those that are open or parked."""

    limit: int = Field(USUAL, ge=1, le=LARGEST, description="How many, at most.")
    after: Cursor | None = Field(None, description="Behind a page, as its Link says.")
    reveal: bool = Field(default=False, description="Unmasked; needs the permission reveal, and goes on record.")


class Purged(LetterFilter):
    """Which messages are purged. Without `state` those that are open or parked."""

    all: bool = Field(default=False, description="Every one: needed where no filter is given.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DlqStats:
    """Exact counts, over one queue, or over all where `queue_name` is null."""

    queue_name: str | None
    total_messages: int
    by_error_type: dict[str, int]
    oldest_message_at: datetime | None
    newest_message_at: datetime | None
    by_state: dict[str, int]
    by_reason: dict[str, int]
    by_queue: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued:
    """A letter that was sent back. `redrive_id` is the redrive that waits for its answer.

    It is empty where the letter keeps no payload, and its message was taken from the queue that still holds it.
    """

    status: Literal["requeued"] = "requeued"
    original_dlq_message_id: str
    new_message_id: str
    redrive_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A letter that was discarded: its body is kept."""

    status: Literal["deleted"] = "deleted"
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgedLetters:
    """How many were removed for good. `filter` is the error type, or in words if more than that was given."""

    status: Literal["purged"] = "purged"
    deleted_count: int
    filter: str


@router.get("/messages", responses={200: {**LINKED[200], **shown([examples.MESSAGE])[200]}})
async def list_messages(
    request: Request,
    response: Response,
    desk: Annotated[Desk, Depends(allowed("read"))],
    caller: CallerOf,
    chosen: Annotated[Messages, Query()],
) -> list[DlqMessage]:
    """Dead letters with their payloads, newest first; a page ends early where payloads are large."""
    if chosen.reveal:
        caller.demand("reveal")
    page = await _found(desk, unsettled(chosen.query()), limit=chosen.limit, after=chosen.after)
    link_next(request, response, page.after)
    if chosen.reveal:
        await masking.reveal_many(desk, caller, page.rows)
    return await run_in_threadpool(_messages, page.rows, revealed=chosen.reveal)


@router.get("/stats", responses=shown(examples.STATS))
async def stats(
    desk: Annotated[Desk, Depends(allowed("read"))],
    *,
    queue: Annotated[Word | None, Query(description="Only this queue; else all.")] = None,
    state: Annotated[list[LetterState], Query(description="Open and parked, unless told.")] = [],  # noqa: B006
) -> DlqStats:
    """How many letters there are, exactly."""
    found = await letters.stats(desk, queue, states=tuple(state) or letters.UNSETTLED)
    return DlqStats(
        queue_name=queue,
        total_messages=found.total,
        by_error_type=masking.masked_counts(_counted(found.by_error_type)),
        oldest_message_at=found.oldest_at,
        newest_message_at=found.newest_at,
        by_state=_counted(found.by_state),
        by_reason=_counted(found.by_reason),
        by_queue=_counted(found.by_queue),
    )


@router.get("/messages/{message_id}", responses=shown(examples.WHOLE_MESSAGE))
async def show_message(
    message_id: MessageId,
    desk: Annotated[Desk, Depends(allowed("read"))],
    caller: CallerOf,
    *,
    queue: OfQueue = None,
    view: Annotated[View, Query(description="The payload as text, as JSON or in hexadecimal.")] = "text",
    reveal: Reveal = False,
) -> DlqMessageWhole:
    """One letter whole: its payload, its attempts, and what was done to it."""
    original = await letters.named(desk, message_id, queue=queue)
    letter_id = original.letter.letter_id
    if reveal:
        original = seen = await masking.reveal(desk, caller, letter_id)
    else:
        seen = await run_in_threadpool(masking.masked, original)
    history = await audit.find(desk, letter_id=letter_id)
    done = [masking.masked_operation(record, caller) for record in history.rows]
    return await run_in_threadpool(whole_message_of, seen, original=original, view=view, history=done)


@router.get(
    "/messages/{message_id}/payload",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def download_payload(
    message_id: MessageId, desk: Annotated[Desk, Depends(allowed("reveal"))], caller: CallerOf, queue: OfQueue = None
) -> Response:
    """The payload, byte for byte; it goes on record who took it."""
    found = await letters.named(desk, message_id, queue=queue)
    if found.letter.payload is None:
        raise DeadLetterError(f"letter {found.letter.letter_id} keeps no payload")
    revealed = await masking.reveal(desk, caller, found.letter.letter_id)
    name = _UNFIT.sub("_", revealed.letter.letter_id)[:100]
    headers = {"Content-Disposition": f'attachment; filename="{name}.bin"'}
    return Response(revealed.letter.payload, media_type="application/octet-stream", headers=headers)


@router.post(
    "/messages/{message_id}/retry",
    status_code=HTTPStatus.ACCEPTED,
    responses=shown(
        {
            "status": "requeued",
            "original_dlq_message_id": "1769846407000-0",
            "new_message_id": "1769850000000-0",
            "redrive_id": "9f86d081884c",
        },
        status=HTTPStatus.ACCEPTED,
    ),
)
async def retry_message(
    message_id: MessageId, desk: Annotated[Desk, Depends(allowed("redrive"))], service: ServiceOf, queue: OfQueue = None
) -> Requeued:
    """Send one letter back: it is published and on record before this answers.

    If the broker is away (503) the letter stays claimed, and is sent as soon as the broker is there.
    """
    found = await letters.named(desk, message_id, queue=queue)
    sent = await retry(desk, found, brokers=service.brokers)
    return Requeued(original_dlq_message_id=message_id, new_message_id=sent.message_id, redrive_id=sent.redrive_id)


@router.delete("/messages/{message_id}", responses=shown({"status": "deleted", "message_id": "1769846407000-0"}))
async def delete_message(
    message_id: MessageId, desk: Annotated[Desk, Depends(allowed("discard"))], queue: OfQueue = None
) -> Deleted:
    """Decide that a letter is not needed. Its body is kept, and it goes on record who did it."""
    await letters.discard_one(desk, await letters.named(desk, message_id, queue=queue))
    return Deleted(message_id=message_id)


@router.delete("/messages", responses=shown({"status": "purged", "deleted_count": 12, "filter": "KeyError"}))
async def purge_messages(
    desk: Annotated[Desk, Depends(allowed("purge"))], chosen: Annotated[Purged, Query()]
) -> PurgedLetters:
    """Remove letters for good. Those that are out are kept; tombstones stay, so that no copy brings one back."""
    if chosen.is_empty and not chosen.all:
        raise BadRequest("name a filter, or say all=true")
    query = unsettled(chosen.query())
    done = await letters.purge(desk, query)
    only = LetterQuery(queue=query.queue, error_type=query.error_type, states=letters.UNSETTLED)
    told = query.error_type if query.error_type is not None and query == only else in_words(query)
    return PurgedLetters(deleted_count=done.count.number, filter=told)


def unsettled(query: LetterQuery) -> LetterQuery:
    """The query; of letters that are open or parked, where it names no state."""
    return query if query.states else replace(query, states=letters.UNSETTLED)


async def _found(desk: Desk, query: LetterQuery, *, limit: int, after: str | None) -> Page[StoredLetter]:
    """A page of letters, whole but for edits, as full as can be had within a bound of looks and of bytes."""
    found: list[StoredLetter] = []
    size = 0
    for _ in range(LOOKS):
        page = await asked(letters.read(desk, query, limit=limit - len(found), after=after))
        size += sum(stored.size for stored in page.rows)
        found += [replace(stored, edits=()) for stored in page.rows]
        after = page.after
        if after is None or len(found) >= limit or size >= letters.ENOUGH:
            break
    return Page(found, after)


def _messages(found: Sequence[StoredLetter], *, revealed: bool) -> list[DlqMessage]:
    """In a thread: to mask large texts takes a while, and others wait for the loop."""
    return [message_of(stored if revealed else masking.masked(stored), original=stored) for stored in found]


def _counted(counts: Any) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}
