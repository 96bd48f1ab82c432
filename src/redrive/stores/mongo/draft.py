"""What a writing call is about to change: gathered while it reads, written all at once or not at all."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import bson

from redrive.core.errors import StoreError
from redrive.stores.mongo.documents import Document
from redrive.stores.mongo.shelves import LETTERS, Shelves

LARGEST = 15 * 1024 * 1024  # bytes of a document: MongoDB takes 16 MiB, and our journal wraps it


class Change(NamedTuple):
    """What becomes of one document: a new one, another one in its place, some fields of it, or nothing."""

    new: Document | None = None
    put: Document | None = None
    fields: Document | None = None


class Draft:
    """The changes of one call, by document; and the numbers that it gives away.

    What is read on the way does not show them: a call reads first, or remembers what it has changed.
    """

    def __init__(self, shelves: Shelves, numbers: Mapping[str, int]) -> None:
        self.shelves = shelves
        self.numbers = dict(numbers)
        self.changes: dict[tuple[str, Any], Change] = {}

    def add(self, part: str, document: Document) -> None:
        """A document that was not there."""
        self.changes[part, document["_id"]] = Change(new=document)

    def put(self, part: str, document: Document) -> None:
        """A document that stands in the place of what was there."""
        self.changes[part, document["_id"]] = Change(put=document)

    def set(self, part: str, name: Any, fields: Document) -> None:
        """Fields of a document that is there, by their paths."""
        known = self.changes.get((part, name), Change())
        self.changes[part, name] = Change(fields=(known.fields or {}) | fields)

    def remove(self, part: str, name: Any) -> None:
        """A document that is there no more."""
        self.changes[part, name] = Change()

    def next_numbers(self, name: str, count: int) -> int:
        """Reserve `count` numbers; the first of them. They follow the order of commits."""
        first = self.numbers.get(name, 0) + 1
        self.numbers[name] = first - 1 + count
        return first

    def encoded(self) -> list[bytes]:
        """The changes as they are written to the journal. Raises `StoreError` for what MongoDB cannot keep."""
        try:
            return [encoded(part, name, change) for (part, name), change in self.changes.items()]
        except (bson.errors.BSONError, OverflowError, UnicodeEncodeError) as error:
            raise StoreError(f"the letter holds what MongoDB cannot keep ({error})") from error


def encoded(part: str, name: Any, change: Change) -> bytes:
    """A change as it is written down. Raises `StoreError` for one that is too large."""
    given = {kind: value for kind, value in change._asdict().items() if value is not None}
    raw = bson.encode({"part": part, "id": name, **given})
    if len(raw) > LARGEST:
        what = "the letter" if part == LETTERS else "what is to be kept"
        raise StoreError(f"{what} is larger than MongoDB can keep ({len(raw)} bytes)")
    return raw


def decoded(raw: Sequence[bytes]) -> dict[tuple[str, Any], Change]:
    """The changes that were written so."""
    found = {}
    for one in raw:
        document = bson.decode(one)
        found[document["part"], document["id"]] = Change(
            document.get("new"), document.get("put"), document.get("fields")
        )
    return found
