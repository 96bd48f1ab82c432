"""A selection: letters as they were when somebody looked, frozen by id and version."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime

from redrive.core.errors import ConfigError, NotAllowed, StateConflict
from redrive.core.keeping import no_payload
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.stored import LetterRow, Selected, StoredLetter
from redrive.triage.desk import Desk

MOST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a selection holds, before anything is done to it."""

    count: int
    by_queue: Mapping[str, int]
    by_error_type: Mapping[str, int]
    by_state: Mapping[str, int]
    oldest_at: datetime | None
    newest_at: datetime | None
    words: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Letters as they were previewed. What changes afterwards is left alone by whatever is done to the selection.

    `unsendable` says of letters that were named why they cannot be sent back; of a filter's letters that shows later.
    """

    rows: Sequence[Selected]
    words: str
    unsendable: Mapping[str, str] = field(default_factory=dict)

    def versions(self) -> dict[str, int]:
        """The version of each letter."""
        return {row.letter_id: row.life.version for row in self.rows}

    def token(self, terms: str = "") -> str:
        """A name for these letters in these versions, and on these terms: how many, and a hash over all of it."""
        named = "".join([f"\n{letter_id} {version}" for letter_id, version in self.versions().items()])
        hashed = hashlib.sha256(f"{terms}{named}".encode("utf-8", "surrogatepass"))
        return f"{len(self.rows)}.{hashed.hexdigest()[:32]}"

    def preview(self) -> Preview:
        """Count it."""
        instants = [row.failed_at for row in self.rows]
        return Preview(
            count=len(self.rows),
            by_queue=_counted(row.queue for row in self.rows),
            by_error_type=_counted(row.error_type for row in self.rows),
            by_state=_counted(row.life.state.value for row in self.rows),
            oldest_at=min(instants, default=None),
            newest_at=max(instants, default=None),
            words=self.words,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to select: a query, ids, or explicitly everything; and the states that are meant if the query names none."""

    query: Query = field(default_factory=Query)
    letter_ids: Sequence[str] = ()
    everything: bool = False
    states: Sequence[LetterState] = (LetterState.OPEN,)
    limit: int = MOST


async def select(desk: Desk, wanted: Wanted) -> Selection:
    """Freeze the letters that are wanted, oldest first.

    Ids are taken as they are, in whatever state. Raises `NotAllowed` without a filter, ids or an explicit all, and
    `LetterNotFound` for an id that is not there.
    """
    if wanted.letter_ids:
        return await _by_ids(desk, wanted.letter_ids)
    if wanted.query == Query() and not wanted.everything:
        raise NotAllowed("name a filter, or say that you mean all letters")
    query = wanted.query if wanted.query.states else replace(wanted.query, states=tuple(wanted.states))
    return Selection(await desk.store.select(query, limit=wanted.limit), in_words(query))


async def recall(desk: Desk, wanted: Wanted, token: str, *, terms: str = "") -> Selection:
    """The selection that was previewed under this token: the same letters in the same versions, on the same terms.

    A selection is in order of arrival, so letters that came since are behind those previewed and left alone. Raises
    `StateConflict` if one of those previewed has changed, and `ConfigError` for a token that is none.
    """
    count, dot, _ = token.partition(".")
    if not dot or not count.isascii() or not count.isdecimal() or len(count) > len(str(MOST)):
        raise ConfigError(f"preview: expected the token of a dry run, got {token!r}")
    selection = await select(desk, replace(wanted, limit=min(max(int(count), 1), wanted.limit)))
    if selection.token(terms) != token:
        raise StateConflict(
            "this is not what was previewed: a letter has changed since, or the request has; look again"
        )
    return selection


def in_words(query: Query) -> str:
    """The filter as a person would say it: `queue=orders, error_type=KeyError, state=open|parked`."""
    said = [
        f"{one.name}={value.isoformat() if isinstance(value, datetime) else value}"
        for one in fields(query)
        if one.name != "states" and (value := getattr(query, one.name)) is not None
    ]
    states = query.states or tuple(LetterState)
    return ", ".join((*(said or ["all letters"]), f"state={'|'.join(states)}"))


async def _by_ids(desk: Desk, letter_ids: Sequence[str]) -> Selection:
    found = [await desk.store.get(letter_id) for letter_id in dict.fromkeys(letter_ids)]
    empty = [one.letter for one in found if one.letter.payload is None and not one.edits]
    words = f"letter={'|'.join(one.letter.letter_id for one in found)}"
    return Selection([*map(_selected, found)], words, {letter.letter_id: str(no_payload(letter)) for letter in empty})


def _selected(stored: StoredLetter) -> Selected:
    of = stored.letter
    return Selected(
        of.letter_id, of.failed_at, stored.life, of.broker, of.queue, of.group, of.error_type, of.app_version
    )


def row_of(stored: StoredLetter) -> LetterRow:
    """A whole letter as the row of a list."""
    same = {name: getattr(stored.letter, name) for name in _ROW}
    return LetterRow(**same, reason=stored.letter.reason.value, life=stored.life, note=stored.note)


_ROW = tuple(one.name for one in fields(LetterRow) if one.name not in ("life", "note", "reason"))


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())
