"""Claiming letters for a redrive: their next generation is spent before anything is published."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from redrive.core.audit import Act
from redrive.core.life import Life, send
from redrive.core.redrive import ItemStatus, Redrive, RedriveState
from redrive.core.stored import Claimed, Edit
from redrive.stores.exact import unescaped
from redrive.stores.ledger import Ledger
from redrive.stores.mongo import auditing, edits, items, tallies
from redrive.stores.mongo.documents import SPOT, Document, from_bytes, moved, to_headers, to_life, to_spot
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import CHUNK, ITEMS, LETTERS
from redrive.stores.witness import Touched

_METADATA = ("broker", "group", "original_message_id", "payload_sha256")
_OWN = ("generation", "version", "edits", "sent_sha256", "payload", "headers", "key")
_FIELDS = {**SPOT, "letter_id": 1}
_FIELDS |= {f"dlq_metadata.{name}": 1 for name in _METADATA} | {f"redrive.{name}": 1 for name in _OWN}


class _Loaded(NamedTuple):
    """A letter with its latest edit, if it has one."""

    document: Document
    edit: Edit | None

    @property
    def letter_id(self) -> str:
        return unescaped(self.document["letter_id"])

    @property
    def can_be_sent(self) -> bool:
        return self.edit is not None or self.document["redrive"]["payload"] is not None

    def touched(self, *, redrive_id: str, generation: int) -> Touched:
        before = unescaped(self.document["dlq_metadata"]["payload_sha256"])
        after = unescaped(self.document["redrive"]["sent_sha256"])
        return Touched(self.letter_id, before, after, {"redrive": redrive_id, "generation": generation})

    def claimed(self, *, generation: int, step: int) -> Claimed:
        said, kept, edit = self.document["dlq_metadata"], self.document["redrive"], self.edit
        return Claimed(
            letter_id=self.letter_id,
            generation=generation,
            step=step,
            broker=unescaped(said["broker"]),
            queue=unescaped(said["queue"]),
            group=unescaped(said["group"]),
            body=from_bytes(kept["payload"]) if edit is None else edit.body,
            headers=to_headers(kept["headers"]) if edit is None else edit.headers,
            key=from_bytes(kept["key"]),
            origin=unescaped(said["original_message_id"]),
            edits=kept["edits"],
        )


async def claim(
    draft: Draft, redrive: Redrive, *, step: int, limit: int, operation_id: str, now: datetime
) -> list[Claimed]:
    """Claim up to `limit` letters, at most a thousand; those claimed before and never sent come first."""
    room = min(limit, CHUNK)
    again = await items.waiting(draft.shelves, redrive.redrive_id, step=step, status=ItemStatus.CLAIMED, limit=room)
    loaded = await _load(draft, again)
    claimed = []
    for item in again:
        if (one := loaded.get(item["letter_id"])) is not None:
            claimed.append(one.claimed(generation=item["generation"], step=step))
        else:  # somebody has removed the letter by hand
            draft.set(ITEMS, item["_id"], {"status": ItemStatus.SKIPPED.value})
    behind, spent, ledger = -1, [], Ledger()
    while redrive.state is RedriveState.RUNNING and len(claimed) < room:
        planned = await items.waiting(
            draft.shelves,
            redrive.redrive_id,
            step=step,
            status=ItemStatus.PLANNED,
            behind=behind,
            limit=room - len(claimed),
        )
        if not planned:
            break
        behind = planned[-1]["place"]
        fresh = await _spend(draft, redrive, planned, ledger=ledger)
        spent += [one.touched(redrive_id=redrive.redrive_id, generation=life.generation) for one, life in fresh]
        claimed += [one.claimed(generation=life.generation, step=step) for one, life in fresh]
    if spent:
        await tallies.write(draft, ledger)
        act = Act(who=redrive.by, verb="letters.redrive", at=now, operation_id=operation_id)
        await auditing.record(draft, act, spent)
    return claimed


async def _spend(
    draft: Draft, redrive: Redrive, planned: Sequence[Document], *, ledger: Ledger
) -> list[tuple[_Loaded, Life]]:
    """Spend the next generation of letters that are still as previewed; skip the others."""
    loaded = await _load(draft, planned)
    out = await items.out(draft, [one.letter_id for one in loaded.values()])
    fresh: list[tuple[_Loaded, Life]] = []
    for item in planned:
        one = loaded.get(item["letter_id"])
        life = None
        if one is not None and one.can_be_sent and one.letter_id not in out:
            version = item["version"]
            life = send(to_life(one.document), previewed=version, over_cap=redrive.over_cap, again=redrive.again)
        if one is None or life is None:
            draft.set(ITEMS, item["_id"], {"status": ItemStatus.SKIPPED.value})
            continue
        spot = to_spot(one.document)
        ledger.move(spot, spot._replace(state=life.state))
        draft.set(LETTERS, one.document["_id"], moved(life))
        had = one.document["dlq_metadata"]["fingerprint"]
        spent = {"status": ItemStatus.CLAIMED.value, "generation": life.generation, "fingerprint": had}
        draft.set(ITEMS, item["_id"], spent)
        fresh.append((one, life))
    return fresh


async def _load(draft: Draft, chosen: Sequence[Document]) -> dict[str, _Loaded]:
    """The letters of items, by their ids as they are kept."""
    names = [item["letter_id"] for item in chosen]
    documents = await draft.shelves.among(LETTERS, "letter_id", names, fields=_FIELDS)
    latest = {unescaped(one["letter_id"]): [one["redrive"]["edits"]] for one in documents if one["redrive"]["edits"]}
    edited = await edits.numbered(draft.shelves, latest)
    loaded = {}
    for one in documents:
        (edit,) = edited.get(unescaped(one["letter_id"]), (None,))
        loaded[one["letter_id"]] = _Loaded(one, edit)
    return loaded
