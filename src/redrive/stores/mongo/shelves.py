"""The collections of a store: the letters, and beside them what the store needs to know."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bson.codec_options import CodecOptions
from pymongo import ASCENDING, DESCENDING, IndexModel, ReadPreference
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from redrive.stores.mongo.documents import Document

LETTERS: Final = ""
ABSENT: Final = (
    "absent"  # what is known of letters that are not there: when they were purged, what was reported of them
)
EDITS: Final = "edits"
INCIDENTS: Final = "incidents"
TALLIES: Final = "tallies"
DEATHS: Final = "deaths"
REDRIVES: Final = "redrives"
ITEMS: Final = "items"
AUDIT: Final = "audit"
TOKENS: Final = "tokens"
MEMOS: Final = "memos"
PARTS: Final = (LETTERS, ABSENT, EDITS, REDRIVES, ITEMS, INCIDENTS, TALLIES, DEATHS, AUDIT, TOKENS, MEMOS)
"""What a writing call may change, in the order in which it is written."""

HEAD: Final = "head"
TURNS: Final = "turns"
PAGES: Final = "pages"
REFUSED: Final = "refused"

CHUNK: Final = 1000

_STATE: Final = ("redrive.state", "_id")
_INDEXES: Final[Mapping[str, Sequence[tuple[str, ...]]]] = {
    LETTERS: (
        _STATE,
        ("dlq_metadata.queue", *_STATE),
        ("dlq_metadata.fingerprint", *_STATE),
        ("dlq_metadata.error_type", *_STATE),
        ("dlq_metadata.user_id", *_STATE),
        ("dlq_metadata.queue", "redrive.state", "redrive.failed_at"),
        ("dlq_metadata.dlq_entry_id", "_id"),
        ("redrive.news",),
        ("processed_at",),
        ("task_type",),
        ("dlq_metadata.dlq_published_at",),
        ("task_type", "dlq_metadata.error_type"),
    ),
    INCIDENTS: (("state", "last_at", "_id"), ("last_at", "_id")),
    DEATHS: (("dimension", "hour"),),
    ITEMS: (("redrive_id", "step", "status", "place"), ("letter_id",)),
    REDRIVES: (("state",),),
    AUDIT: (("letter_id", "_id"), ("operation_id",)),
    PAGES: (("turn",),),
}
_UNIQUE: Final = {LETTERS: "letter_id", REDRIVES: "redrive_id", TOKENS: "sha256"}

Order = Sequence[tuple[str, int]]
UP, DOWN = ASCENDING, DESCENDING


class Shelves:
    """The collections under one name; reading goes to the primary, writing is on the disks of most members."""

    def __init__(self, database: AsyncDatabase[Document], name: str) -> None:
        self.database = database
        self._name = name

    def __getitem__(self, part: str) -> AsyncCollection[Document]:
        return self.database.get_collection(
            f"{self._name}.{part}" if part else self._name,
            codec_options=CodecOptions(tz_aware=True),
            read_preference=ReadPreference.PRIMARY,
            read_concern=ReadConcern("majority"),
            write_concern=WriteConcern(w="majority", j=True),
        )

    async def many(
        self,
        part: str,
        where: Mapping[str, Any],
        *,
        fields: Mapping[str, Any] | None = None,
        order: Order | None = None,
        limit: int = 0,
    ) -> list[Document]:
        """Documents, or these fields of them."""
        return await self[part].find(where, fields, sort=order, limit=limit).to_list()

    async def one(
        self, part: str, where: Mapping[str, Any], *, fields: Mapping[str, Any] | None = None
    ) -> Document | None:
        """A document, if there is one."""
        return await self[part].find_one(where, fields)

    async def among(
        self, part: str, name: str, values: Sequence[Any], *, fields: Mapping[str, Any] | None = None
    ) -> list[Document]:
        """The documents in which a field has one of these values, however many they are."""
        found: list[Document] = []
        for start in range(0, len(values), CHUNK):
            found += await self.many(part, {name: {"$in": [*values[start : start + CHUNK]]}}, fields=fields)
        return found

    async def create_indexes(self) -> None:
        """Create what is missing."""
        for part in {*_INDEXES, *_UNIQUE}:
            models = [IndexModel([(name, UP) for name in names]) for names in _INDEXES.get(part, ())]
            if part in _UNIQUE:
                models.append(IndexModel([(_UNIQUE[part], UP)], unique=True))
            await self[part].create_indexes(models)
