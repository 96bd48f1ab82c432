"""What people changed before sending a letter back."""

from collections.abc import Mapping, Sequence
from typing import Any

from bson import Binary

from redrive.core.stored import Edit
from redrive.stores.exact import instant, microseconds, unescaped
from redrive.stores.mongo.documents import Document, from_headers, to_headers
from redrive.stores.mongo.shelves import EDITS, LETTERS, Shelves
from redrive.stores.mongo.values import key_of, texts, to_text


def name_of(letter_id: str, number: int) -> str:
    """The id of an edit."""
    return key_of(letter_id, number)


def to_document(letter_id: str, number: int, edit: Edit) -> Document:
    """An edit as it is kept."""
    return {
        "_id": name_of(letter_id, number),
        "letter_id": to_text(letter_id),
        "number": number,
        "body": Binary(edit.body),
        "headers": from_headers(edit.headers),
        "by": to_text(edit.by),
        "edited_at": microseconds(edit.edited_at),
    }


def to_edit(document: Mapping[str, Any]) -> Edit:
    """The edit that is kept so."""
    return Edit(
        body=bytes(document["body"]),
        headers=to_headers(document["headers"]),
        by=unescaped(document["by"]),
        edited_at=instant(document["edited_at"]),
    )


async def numbered(shelves: Shelves, numbers: Mapping[str, Sequence[int]]) -> dict[str, list[Edit]]:
    """Edits of letters by their numbers, in this order."""
    names = [name_of(letter_id, number) for letter_id, some in numbers.items() for number in some]
    found = {one["_id"]: to_edit(one) for one in await shelves.among(EDITS, "_id", names)} if names else {}
    return {letter_id: [found[name_of(letter_id, number)] for number in some] for letter_id, some in numbers.items()}


async def sent_hashes(shelves: Shelves, letter_ids: Sequence[str]) -> dict[str, str]:
    """The hash of what would be sent back, for those of these letters that are there."""
    fields = {"letter_id": 1, "redrive.sent_sha256": 1}
    found = await shelves.among(LETTERS, "letter_id", texts(dict.fromkeys(letter_ids)), fields=fields)
    return {unescaped(one["letter_id"]): unescaped(one["redrive"]["sent_sha256"]) for one in found}
