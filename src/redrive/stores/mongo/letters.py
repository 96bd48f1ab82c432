"""One letter, and what people do to letters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.letter import payload_hash
from redrive.core.life import LetterState, Life, discard
from redrive.core.query import Query
from redrive.core.stored import Edit, Page, Selected, StoredLetter
from redrive.stores.editing import refuse_edit
from redrive.stores.exact import unescaped
from redrive.stores.ledger import Ledger
from redrive.stores.mongo import auditing, edits, items, tallies
from redrive.stores.mongo.documents import (
    SELECTED,
    SPOT,
    Document,
    moved,
    to_letter,
    to_life,
    to_outcome,
    to_selected,
    to_spot,
)
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.searching import Search, find_documents, first
from redrive.stores.mongo.shelves import ABSENT, CHUNK, EDITS, LETTERS, Shelves
from redrive.stores.mongo.values import texts, to_text
from redrive.stores.witness import Touched

_OWN = ("generation", "version", "edits", "sent_sha256")
_BRIEF = {**SPOT, "letter_id": 1, **{f"redrive.{name}": 1 for name in _OWN}}


async def get(shelves: Shelves, letter_id: str) -> StoredLetter:
    """One letter whole. Raises `LetterNotFound`."""
    found = await get_many(shelves, [letter_id])
    if not found:
        raise _not_found(letter_id)
    return found[0]


async def get_many(shelves: Shelves, letter_ids: Sequence[str]) -> list[StoredLetter]:
    """Letters whole, in the order asked, each once; those that are not there are left out."""
    names = [*dict.fromkeys(letter_ids)]
    documents = await shelves.among(LETTERS, "letter_id", texts(names), fields={"redrive.text": 0})
    kept = {unescaped(one["letter_id"]): one for one in documents}
    changed = await edits.numbered(shelves, {name: range(1, one["redrive"]["edits"] + 1) for name, one in kept.items()})
    sent = await items.redrives_of(shelves, [*kept])
    return [
        StoredLetter(
            letter=to_letter(kept[name]),
            life=to_life(kept[name]),
            note=unescaped(kept[name]["redrive"]["note"]),
            edits=tuple(changed[name]),
            outcomes=tuple(to_outcome(one, letter_id=name) for one in kept[name]["redrive"]["outcomes"]),
            redrive_ids=tuple(sent.get(name, ())),
        )
        for name in names
        if name in kept
    ]


async def select_named(shelves: Shelves, letter_ids: Sequence[str]) -> list[Selected]:
    """Letters as a selection has them, in the order asked, each once. Raises `LetterNotFound`."""
    names = [*dict.fromkeys(letter_ids)]
    documents = await shelves.among(LETTERS, "letter_id", texts(names), fields={**SELECTED, "redrive.edits": 1})
    unchanged = [one["_id"] for one in documents if not one["redrive"]["edits"]]
    empty = set[int]()
    for start in range(0, len(unchanged), CHUNK):  # asked for there: a payload may be large
        where = {"_id": {"$in": unchanged[start : start + CHUNK]}, "redrive.payload": None}
        empty |= {one["_id"] for one in await shelves.many(LETTERS, where, fields={"_id": 1})}
    found = {
        unescaped(one["letter_id"]): to_selected(one)._replace(sendable=one["_id"] not in empty) for one in documents
    }
    for name in names:
        if name not in found:
            raise _not_found(name)
    return [found[name] for name in names]


async def read(shelves: Shelves, query: Query, *, limit: int, after: str | None, most: int) -> Page[StoredLetter]:
    """A page of letters whole, newest first, until they have so many bytes together.

    How large one is shows only when it is read: the first alone, then as many of that size as are still wanted, and at
    most four times as many as before.
    """
    page = await find_documents(shelves, query, limit=limit, after=after)
    found: list[StoredLetter] = []
    size, behind, some = 0, 0, 1
    while behind < len(page.rows) and size < most:
        last = page.rows[behind : behind + some]
        letters = await get_many(shelves, [unescaped(one["letter_id"]) for one in last])
        found += letters
        size += sum(one.size for one in letters)
        behind += some
        some = max(1, min(4 * some, (most - size) * behind // max(1, size), _AT_ONCE))
    return Page(found, page.after if behind >= len(page.rows) else str(last[-1]["_id"]))


_AT_ONCE = 25  # letters to read whole in one go, at most


async def discard_some(draft: Draft, letters: Mapping[str, int], *, act: Act) -> list[str]:
    """Discard letters that are still of the version given, at most a thousand."""
    found = await _by_id(draft, [*letters])
    moves = []
    for letter_id, version in letters.items():
        document = found.get(letter_id)
        life = None if document is None else to_life(document)
        after = discard(life) if life is not None and life.version == version else None
        if document is not None and after is not None:
            moves.append((document, after))
    await _move(draft, moves)
    touched = [_touched(document, _from_to(document, life.state)) for document, life in moves]
    await auditing.record(draft, act, touched)
    return [one.letter_id for one in touched]


async def note(draft: Draft, letter_id: str, text: str, *, act: Act) -> None:
    """Put a note on a letter."""
    document = await _one(draft, letter_id)
    draft.set(LETTERS, document["_id"], {"redrive.note": to_text(text)})
    await auditing.record(draft, act, [_touched(document, {"note": text})])


async def edit(draft: Draft, letter_id: str, edited: Edit, *, version: int, act: Act) -> int:
    """Keep an edited form beside the original; its number."""
    document = await _one(draft, letter_id)
    life = to_life(document)
    refuse_edit(letter_id, life, version=version)
    number: int = document["redrive"]["edits"] + 1
    draft.add(EDITS, edits.to_document(letter_id, number, edited))
    sent = payload_hash(edited.body)
    own = {"redrive.edits": number, "redrive.sent_sha256": sent}
    draft.set(LETTERS, document["_id"], moved(life.to(life.state)) | own)
    touched = _touched(document, {"number": number})
    await auditing.record(draft, act, [touched._replace(after_sha256=sent)])
    return number


async def doomed(shelves: Shelves, query: Query, *, before: datetime, limit: int) -> dict[int, int]:
    """Letters that failed before then and are not out, at most a thousand: number and version of each."""
    to_at = before if query.to_at is None else min(before, query.to_at)
    states = tuple(state for state in query.states or LetterState if state is not LetterState.REDRIVING)
    if not states or limit < 1:
        return {}
    search = Search(replace(query, to_at=to_at, states=states), newest_first=False)
    found = await first(shelves, search, limit=min(limit, CHUNK), fields={"redrive.version": 1})
    return {one["_id"]: one["redrive"]["version"] for one in found}


async def purge_some(draft: Draft, chosen: Mapping[int, int], *, act: Act) -> int:
    """Remove these letters if they are still of the version given; leave tombstones."""
    found = await draft.shelves.among(LETTERS, "_id", [*chosen], fields=_BRIEF)
    documents = [one for one in found if one["redrive"]["version"] == chosen[one["_id"]]]
    documents.sort(key=lambda one: int(one["_id"]))
    there = {one["_id"] for one in await draft.shelves.among(ABSENT, "_id", [one["letter_id"] for one in documents])}
    ledger = Ledger()
    for document in documents:
        letter_id, kept = unescaped(document["letter_id"]), document["redrive"]
        ledger.move(to_spot(document), None)
        draft.remove(LETTERS, document["_id"])
        for number in range(1, kept["edits"] + 1):
            draft.remove(EDITS, edits.name_of(letter_id, number))
        tombstone = {"_id": document["letter_id"], "buried_in": kept["generation"], "outcomes": []}
        (draft.put if document["letter_id"] in there else draft.add)(ABSENT, tombstone)
    if documents:
        await tallies.write(draft, ledger)
    touched = [_touched(one, _from_to(one, "purged"))._replace(after_sha256="") for one in documents]
    await auditing.record(draft, act, touched)
    return len(documents)


async def _move(draft: Draft, moves: Sequence[tuple[Document, Life]]) -> None:
    ledger = Ledger()
    for document, life in moves:
        spot = to_spot(document)
        ledger.move(spot, spot._replace(state=life.state))
        draft.set(LETTERS, document["_id"], moved(life))
    if moves:
        await tallies.write(draft, ledger)


async def _by_id(draft: Draft, letter_ids: Sequence[str]) -> dict[str, Document]:
    found = await draft.shelves.among(LETTERS, "letter_id", texts(letter_ids), fields=_BRIEF)
    return {unescaped(one["letter_id"]): one for one in found}


async def _one(draft: Draft, letter_id: str) -> Document:
    found = (await _by_id(draft, [letter_id])).get(letter_id)
    if found is None:
        raise _not_found(letter_id)
    return found


def _not_found(letter_id: str) -> LetterNotFound:
    return LetterNotFound(f"no letter {letter_id!r} is in the store")


def _touched(document: Document, detail: dict[str, Any]) -> Touched:
    sent = unescaped(document["redrive"]["sent_sha256"])
    return Touched(unescaped(document["letter_id"]), sent, sent, detail)


def _from_to(document: Document, state: str) -> dict[str, Any]:
    return {"state": [document["redrive"]["state"], str(state)]}
