"""A selection: letters as they were when somebody looked, frozen by id and version."""

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import NamedTuple

from redrive.core.errors import ConfigError, NotAllowed, StateConflict
from redrive.core.keeping import no_payload
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.stored import LetterRow, Selected, StoredLetter
from redrive.triage.aside import aside
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


class Kind(NamedTuple):
    """What many letters of a selection have in common: all that is asked about them, but who they are and when."""

    state: LetterState
    broker: str
    queue: str
    group: str
    error_type: str

    @property
    def home(self) -> tuple[str, str, str]:
        """Where they came from."""
        return self.broker, self.queue, self.group


def kinds_of(rows: Sequence[Selected]) -> dict[Kind, int]:
    """How many letters there are of each kind, in the order in which they are met."""
    return {Kind(*kind): number for kind, number in Counter([_kind(row) for row in rows]).items()}


def of_kinds(rows: Sequence[Selected], kinds: Container[tuple[object, ...]]) -> list[Selected]:
    """Those of these kinds."""
    return [row for row in rows if _kind(row) in kinds]


def _kind(row: Selected) -> tuple[LetterState, str, str, str, str]:
    return row.life.state, row.broker, row.queue, row.group, row.error_type


@dataclass(frozen=True, slots=True)
class Selection:
    """Letters as they were previewed. What changes afterwards is left alone by whatever is done to the selection.

    `unsendable` says of letters that were named why they cannot be sent back; of a filter's letters that shows later.
    `mark` is the cursor of the news when a filter was asked: what came or reopened behind it is not in the selection.
    """

    rows: Sequence[Selected]
    words: str
    unsendable: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""

    def versions(self) -> dict[str, int]:
        """The version of each letter."""
        return {row.letter_id: row.life.version for row in self.rows}

    def token(self, terms: str = "") -> str:
        """A name for these letters in these versions, and on these terms: how many, the mark, a hash over all of it."""
        names = "\n".join([row.letter_id for row in self.rows])
        versions = [row.life.version for row in self.rows]
        hashed = hashlib.sha256(f"{terms}\n{names}\n{versions}".encode("utf-8", "surrogatepass"))
        return f"{len(self.rows)}.{self.mark}.{hashed.hexdigest()[:32]}"

    def preview(self, kinds: Mapping["Kind", int] | None = None) -> Preview:
        """Count it, unless its letters have been counted already."""
        kinds = kinds_of(self.rows) if kinds is None else kinds
        instants = [row.failed_at for row in self.rows]
        return Preview(
            count=len(self.rows),
            by_queue=_counted((kind.queue, number) for kind, number in kinds.items()),
            by_error_type=_counted((kind.error_type, number) for kind, number in kinds.items()),
            by_state=_counted((kind.state.value, number) for kind, number in kinds.items()),
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
    """Freeze the letters that are wanted, oldest first; ids in the order given.

    Ids are taken as they are, in whatever state. Raises `NotAllowed` without a filter, ids or an explicit all, and
    `LetterNotFound` for an id that is not there.
    """
    if wanted.letter_ids:
        return await _by_ids(desk, wanted.letter_ids)
    if wanted.query == Query() and not wanted.everything:
        raise NotAllowed("name a filter, or say that you mean all letters")
    return await _matching(desk, wanted, mark=(await desk.store.news(after=None, limit=1)).after or "")


async def recall(desk: Desk, wanted: Wanted, token: str, *, terms: str = "") -> Selection:
    """The selection that was previewed under this token: the same letters in the same versions, on the same terms.

    Letters that came or reopened since are behind its mark and left alone. Raises `StateConflict` if one of those
    previewed has changed, and `ConfigError` for a token that is none.
    """
    said = _TOKEN.fullmatch(token)
    if said is None:
        raise ConfigError(f"preview: expected the token of a dry run, got {token!r}")
    count, mark = said.groups()
    wanted = replace(wanted, limit=min(max(int(count), 1), wanted.limit))
    selection = await (_matching(desk, wanted, mark=mark) if mark else select(desk, wanted))
    if await aside(selection.rows, selection.token, terms) != token:
        raise StateConflict(
            "this is not what was previewed: a letter has changed since, or the request has; look again"
        )
    return selection


_TOKEN = re.compile(rf"([0-9]{{1,{len(str(MOST))}}})\.([0-9]{{0,18}})\..+")


async def _matching(desk: Desk, wanted: Wanted, *, mark: str) -> Selection:
    query = wanted.query if wanted.query.states else replace(wanted.query, states=tuple(wanted.states))
    found = await desk.store.select(query, limit=wanted.limit, upto=mark or None)
    return Selection(found, in_words(query), mark=mark)


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
    found = await desk.store.select_named(letter_ids)
    empty = await desk.store.get_many([row.letter_id for row in found if not row.sendable])
    words = f"letter={'|'.join(row.letter_id for row in found)}"
    return Selection(found, words, {one.letter.letter_id: str(no_payload(one.letter)) for one in empty})


def row_of(stored: StoredLetter) -> LetterRow:
    """A whole letter as the row of a list."""
    same = {name: getattr(stored.letter, name) for name in _ROW}
    return LetterRow(**same, reason=stored.letter.reason.value, life=stored.life, note=stored.note)


_ROW = tuple(one.name for one in fields(LetterRow) if one.name not in ("life", "note", "reason"))


def _counted(numbers: Iterable[tuple[str, int]]) -> dict[str, int]:
    found = Counter[str]()
    for name, number in numbers:
        found[name] += number
    return dict(found.most_common())
