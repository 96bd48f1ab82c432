"""Carrying changes out: as often as one likes, by whoever, and never over what came later."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bson import Binary
from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne
from pymongo.errors import BulkWriteError

from redrive.stores.mongo.documents import Document
from redrive.stores.mongo.draft import Change, encoded
from redrive.stores.mongo.shelves import LETTERS, PARTS, REFUSED, Shelves

Named = tuple[Any, Change]
Request = InsertOne[Document] | UpdateOne | ReplaceOne[Document] | DeleteOne

_INSERTS: Final = 1000
_UPDATES: Final = 20  # in one command: FerretDB takes a connection to its database for each, and has 50
_DUPLICATE: Final = 11000


async def apply(shelves: Shelves, changes: Mapping[tuple[str, Any], Change], *, turn: int) -> list[str]:
    """Carry out the changes of a turn; return what the server has refused, and will refuse again.

    A document remembers in which turn it was changed last: of one that was changed in this turn or a later one nothing
    is touched.
    """
    refused: list[str] = []
    for part in PARTS:
        mine = [(name, change) for (where, name), change in changes.items() if where == part]
        new = [(name, change) for name, change in mine if change.new is not None]
        others = [(name, change) for name, change in mine if change.new is None]
        for some, size in ((new, _INSERTS), (others, _UPDATES)):
            for start in range(0, len(some), size):
                refused += await _apply_some(shelves, part, some[start : start + size], turn=turn)
    return refused


async def _apply_some(shelves: Shelves, part: str, some: Sequence[Named], *, turn: int) -> list[str]:
    try:
        await shelves[part].bulk_write([_request(part, *one, turn=turn) for one in some], ordered=False)
    except BulkWriteError as failed:
        if failed.details.get("writeConcernErrors"):
            raise
        errors = [(*some[error["index"]], error) for error in failed.details["writeErrors"]]
        there = await _there(shelves, part, [name for name, _, error in errors if error.get("code") == _DUPLICATE])
        return [
            await _set_aside(shelves, part, (name, change), why=str(error.get("errmsg", "")), turn=turn)
            for name, change, error in errors
            if name not in there
        ]
    return []


async def _there(shelves: Shelves, part: str, names: Sequence[Any]) -> set[Any]:
    """Those documents that are there: carried out before, or by somebody else at the same moment."""
    return {one["_id"] for one in await shelves.among(part, "_id", names, fields={"_id": 1})}


def _request(part: str, name: Any, change: Change, *, turn: int) -> Request:
    turned = "redrive.rev" if part == LETTERS else "rev"
    unchanged = {"_id": name, turned: {"$lt": turn}}
    if change.new is not None:
        return InsertOne(_stamped(part, change.new, turn))
    if change.put is not None:
        return ReplaceOne(unchanged, _stamped(part, change.put, turn))
    if change.fields is not None:
        return UpdateOne(unchanged, {"$set": {**change.fields, turned: turn}})
    return DeleteOne(unchanged)


def _stamped(part: str, document: Document, turn: int) -> Document:
    if part == LETTERS:
        return {**document, "redrive": {**document["redrive"], "rev": turn}}
    return {**document, "rev": turn}


async def _set_aside(shelves: Shelves, part: str, refused: Named, *, why: str, turn: int) -> str:
    """Keep a change that was refused: what was agreed on must not hold up all that comes after it."""
    name, change = refused
    kept = {"turn": turn, "part": part, "why": why, "change": Binary(encoded(part, name, change))}
    await shelves[REFUSED].update_one({"_id": f"{turn}:{part}:{name}"}, {"$set": kept}, upsert=True)
    return why
