"""Letters that are not needed, over HTTP: discard them, which keeps their bodies, or purge old ones, for good."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends
from pydantic import ConfigDict, Field, StrictBool

from redrive.api import examples
from redrive.api.auth import PermittedRoute, allowed
from redrive.api.examples import shown
from redrive.api.routes.letters import Asked, Number, Short
from redrive.core.duration import as_duration
from redrive.core.errors import ConfigError
from redrive.core.query import Query
from redrive.door.filters import Length, LetterFilter, Word
from redrive.triage import letters
from redrive.triage.aside import aside
from redrive.triage.desk import Desk
from redrive.triage.selection import Preview, Wanted, select

router = APIRouter(prefix="/letters", tags=["letters"], route_class=PermittedRoute)

MOST_IDS = 1000
MOST_LETTERS = 100_000


class SeenLetter(Asked):
    """A letter, in the version that was seen."""

    letter_id: Word
    version: Number


class DiscardOrder(Asked):
    """Letters that are not needed: as they were seen, by a filter, or all. Named in one way.

    By a filter or all, those that are open or parked are meant; at most 100,000, the oldest first.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"letters": [{"letter_id": examples.LINE["letter_id"], "version": 1}], "why": "a test order"},
                {"filter": {"queue": "orders", "error_type": "KeyError"}, "dry_run": True},
            ]
        }
    )

    letters: list[SeenLetter] = Field([], max_length=MOST_IDS)
    filter: LetterFilter | None = None
    all: StrictBool = False
    why: Short = Field("", description="What the audit should say.")
    dry_run: StrictBool = Field(default=False, description="Only say what would be discarded.")

    def wanted(self) -> Wanted:
        """What to select. Raises `ConfigError`."""
        if sum([bool(self.letters), self.filter is not None, self.all]) != 1:
            raise ConfigError("filter: expected one of letters, filter or all, and only one")
        if self.filter is not None and self.filter.is_empty:
            raise ConfigError("filter: expected at least one condition; for every letter say all")
        return Wanted(
            query=Query() if self.filter is None else self.filter.query(),
            letter_ids=[one.letter_id for one in self.letters],
            everything=self.all,
            states=letters.UNSETTLED,
            limit=MOST_LETTERS,
        )


class PurgeOrder(Asked):
    """Letters to be removed for good: those that failed longer ago than this and match, in whatever state.

    Letters that are out are kept all the same.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"older_than": "90d", "filter": {"state": ["resolved"]}},
                {"older_than": "90d", "filter": {"state": ["resolved"]}, "dry_run": False},
            ]
        }
    )

    older_than: Length = Field(description="How long ago: seconds, or as in 90d.")
    filter: LetterFilter | None = None
    all: StrictBool = Field(default=False, description="Every letter: where there is neither a filter nor an age.")
    dry_run: StrictBool = Field(default=True, description="Only count what would be removed.")

    def age(self) -> timedelta:
        """How long ago. Raises `ConfigError`, also if every letter is meant and that is not said, or the reverse."""
        try:
            age = as_duration(self.older_than)
        except ValueError as error:
            raise ConfigError(f"older_than: {error}") from error
        every = not age and (self.filter is None or self.filter.is_empty)
        if every != self.all:
            raise ConfigError(
                "all: expected true where there is neither a filter nor an age above zero, and only there"
            )
        return age


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardPreview:
    """What would be discarded. Nothing has happened."""

    dry_run: Literal[True] = True
    selection: str
    total: int
    by_queue: dict[str, int]
    by_error_type: dict[str, int]
    by_state: dict[str, int]
    oldest_at: datetime | None
    newest_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardDone:
    """How many letters were discarded, and how many had changed since they were looked at and were left alone."""

    discarded: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeDone:
    """How many letters were removed, or would be; at least so many if it is `capped`."""

    dry_run: bool
    letters: int
    capped: bool
    before: datetime
    selection: str


_PURGED: dict[str, Any] = {
    "dry_run": False,
    "letters": 1500,
    "capped": False,
    "before": "2026-01-31T08:00:00Z",
    "selection": "to_at=2026-01-31T08:00:00+00:00, state=resolved",
}


@router.post("/discard", responses=shown({"discarded": 1, "changed": 0}))
async def discard_letters(
    desk: Annotated[Desk, Depends(allowed("discard"))], order: DiscardOrder
) -> DiscardDone | DiscardPreview:
    """Decide that letters are not needed: they stay in the store, and nobody has to look at them any more."""
    wanted = order.wanted()
    if order.dry_run:
        asked = await select(desk, wanted)
        return _previewed(await aside(asked.rows, asked.preview))
    if order.letters:
        seen = {one.letter_id: one.version for one in order.letters}
        done = await letters.discard_seen(desk, seen, words=f"{len(seen)} letters by id", why=order.why)
    else:
        done = await letters.discard(desk, await select(desk, wanted), why=order.why)
    return DiscardDone(discarded=done.discarded, changed=done.changed)


@router.post("/purge", responses=shown(_PURGED))
async def purge_letters(desk: Annotated[Desk, Depends(allowed("purge"))], order: PurgeOrder) -> PurgeDone:
    """Remove old letters for good, or count them. Tombstones stay, so that no copy brings one back."""
    verb = letters.purge_preview if order.dry_run else letters.purge
    query = Query() if order.filter is None else order.filter.query()
    found = await verb(desk, query, older_than=order.age())
    return PurgeDone(
        dry_run=order.dry_run,
        letters=found.count.number,
        capped=found.count.capped,
        before=found.before,
        selection=found.words,
    )


def _previewed(preview: Preview) -> DiscardPreview:
    return DiscardPreview(
        selection=preview.words,
        total=preview.count,
        by_queue=dict(preview.by_queue),
        by_error_type=dict(preview.by_error_type),
        by_state=dict(preview.by_state),
        oldest_at=preview.oldest_at,
        newest_at=preview.newest_at,
    )
