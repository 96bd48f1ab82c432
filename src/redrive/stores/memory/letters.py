"""The letter store in memory."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.life import LetterState, discard
from redrive.core.query import Query
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import (
    Collected,
    Count,
    Dimension,
    Edit,
    IncidentChange,
    IncidentRow,
    LetterRow,
    Page,
    Selected,
    Stats,
    StoredLetter,
)
from redrive.stores.cursor import mark, mark_of, number_of, page_of
from redrive.stores.editing import refuse_edit
from redrive.stores.ledger import Ledger
from redrive.stores.memory.collecting import collect
from redrive.stores.memory.shelf import Kept, Shelf
from redrive.stores.witness import Touched


class MemoryLetters:
    """A `LetterStore`. Searches by `Query.matches`: what every store must find."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def collect(
        self, letters: Sequence[DeadLetter], outcomes: Sequence[RedriveOutcome] = (), *, act: Act | None = None
    ) -> Collected:
        return collect(self._shelf, letters, outcomes, act=act)

    async def get(self, letter_id: str) -> StoredLetter:
        kept = self._shelf.letter(letter_id)
        told = self._shelf.outcomes.get(letter_id, {})
        return StoredLetter(
            letter=kept.letter,
            life=kept.life,
            note=kept.note,
            edits=tuple(kept.edits),
            outcomes=tuple(told[key] for key in sorted(told)),
            redrive_ids=tuple(name for name, items in self._shelf.items.items() if letter_id in items),
        )

    async def get_many(self, letter_ids: Sequence[str]) -> Sequence[StoredLetter]:
        return [await self.get(name) for name in dict.fromkeys(letter_ids) if name in self._shelf.letters]

    async def find(
        self,
        query: Query,
        *,
        limit: int = 50,
        after: str | None = None,
        patience: timedelta | None = None,  # noqa: ARG002 - it is always quick enough
    ) -> Page[LetterRow]:
        below = number_of(after)
        found = [kept for kept in self._matching(query) if below is None or kept.seq < below]
        page = page_of(found[::-1], limit=limit, after=lambda kept: str(kept.seq))
        return Page([kept.row() for kept in page.rows], page.after)

    async def read(self, query: Query, *, limit: int, after: str | None = None, most: int) -> Page[StoredLetter]:
        page = await self.find(query, limit=limit, after=after)
        found: list[StoredLetter] = []
        for row in page.rows:
            if sum(one.size for one in found) >= most:
                return Page(found, str(self._shelf.letter(found[-1].letter.letter_id).seq))
            found.append(await self.get(row.letter_id))
        return Page(found, page.after)

    async def select(self, query: Query, *, limit: int, upto: str | None = None) -> Sequence[Selected]:
        last = number_of(upto)
        return [kept.selected() for kept in self._matching(query) if last is None or kept.news <= last][:limit]

    async def select_named(self, letter_ids: Sequence[str]) -> Sequence[Selected]:
        found = [self._shelf.letter(name) for name in dict.fromkeys(letter_ids)]
        return [kept.selected()._replace(sendable=kept.can_be_sent()) for kept in found]

    async def count(self, query: Query, *, cap: int = 10_000, patience: timedelta | None = None) -> Count:  # noqa: ARG002
        number = sum(1 for _ in self._matching(query))
        return Count(min(number, cap), number > cap)

    def _matching(self, query: Query) -> Iterator[Kept]:
        kept = sorted(self._shelf.letters.values(), key=lambda one: one.seq)
        return (one for one in kept if query.matches(one.letter, state=one.life.state))

    async def stats(self, queue: str | None = None, *, states: Sequence[LetterState] = ()) -> Stats:
        kept = [*self._matching(Query(queue=queue, states=tuple(states)))]
        instants = [one.letter.failed_at for one in kept]
        return Stats(
            total=len(kept),
            by_state=Counter(one.life.state.value for one in kept),
            by_error_type=Counter(one.letter.error_type for one in kept),
            by_reason=Counter(one.letter.reason.value for one in kept),
            by_queue=Counter(one.letter.queue for one in kept),
            oldest_at=min(instants, default=None),
            newest_at=max(instants, default=None),
        )

    async def trends(
        self, *, since: datetime, until: datetime | None = None, queue: str | None = None, by: Dimension
    ) -> Sequence[tuple[datetime, Mapping[str, int]]]:
        hours: dict[datetime, Counter[str]] = {}
        for death, number in sorted(self._shelf.deaths.items()):
            within = since <= death.hour and (until is None or death.hour < until)
            if within and queue in (None, death.queue):
                hours.setdefault(death.hour, Counter())[getattr(death, by)] += number
        return [*hours.items()]

    async def news(self, *, after: str | None, limit: int = 100) -> Page[LetterRow]:
        last = self._shelf.last_seq
        behind = last if after is None else min(number_of(after) or 0, last)
        new = sorted((kept for kept in self._shelf.letters.values() if kept.news > behind), key=lambda one: one.news)
        shown = new[:limit]
        return Page([kept.row() for kept in shown], str(shown[-1].news if shown else behind))

    async def incidents(
        self,
        *,
        state: str | None = "open",
        limit: int = 50,
        after: str | None = None,
        since: datetime | None = None,
    ) -> Page[IncidentRow]:
        behind = mark_of(after)
        rows = [replace(row, hours=()) for row in self._shelf.incidents.values() if state in (None, row.state)]
        rows = [row for row in rows if since is None or row.first_at >= since]
        rows.sort(key=lambda row: (row.last_at, row.fingerprint), reverse=True)
        left = [row for row in rows if behind is None or (row.last_at, row.fingerprint) < behind]
        return page_of(left, limit=limit, after=lambda row: mark(row.last_at, row.fingerprint))

    async def incident(self, incident_id: str) -> IncidentRow:
        try:
            return self._shelf.incidents[incident_id]
        except KeyError:
            raise LetterNotFound(f"no incident {incident_id!r} is in the store") from None

    async def incident_hours(
        self, incident_ids: Sequence[str], *, since: datetime
    ) -> Mapping[str, Sequence[tuple[datetime, int]]]:
        rows = (self._shelf.incidents[name] for name in incident_ids if name in self._shelf.incidents)
        hours = {row.incident_id: [(at, number) for at, number in row.hours if at >= since] for row in rows}
        return {name: found for name, found in hours.items() if found}

    async def change_incident(self, incident_id: str, change: IncidentChange, *, act: Act) -> IncidentRow:
        row = await self.incident(incident_id)
        after = replace(row, **change.given())
        self._shelf.incidents[incident_id] = after
        self._shelf.record(replace(act, detail=act.detail | {"incident": incident_id, **change.said()}), ())
        return after

    async def discard(self, letters: Mapping[str, int], *, act: Act) -> Sequence[str]:
        moves = []
        for letter_id, version in letters.items():
            kept = self._shelf.letters.get(letter_id)
            life = discard(kept.life) if kept is not None and kept.life.version == version else None
            if kept is not None and life is not None:
                moves.append((kept, life))
        touched = [_touched(kept, after=kept.sent_sha256(), state=life.state) for kept, life in moves]
        self._shelf.move(moves)
        self._shelf.record(act, touched)
        return [kept.letter.letter_id for kept, _ in moves]

    async def note(self, letter_id: str, text: str, *, act: Act) -> None:
        kept = self._shelf.letter(letter_id)
        kept.note = text
        touched = _touched(kept, after=kept.sent_sha256(), note=text)
        self._shelf.record(act, [touched])

    async def edit(self, letter_id: str, edit: Edit, *, version: int, act: Act) -> int:
        kept = self._shelf.letter(letter_id)
        refuse_edit(letter_id, kept.life, version=version)
        touched = _touched(kept, after=payload_hash(edit.body), number=len(kept.edits) + 1)
        kept.edits.append(edit)
        kept.life = kept.life.to(kept.life.state)
        self._shelf.record(act, [touched])
        return len(kept.edits)

    async def purge(self, query: Query, *, before: datetime, limit: int, act: Act) -> int:
        doomed = [
            kept
            for kept in self._matching(query)
            if kept.letter.failed_at < before and kept.life.state is not LetterState.REDRIVING
        ][:limit]
        ledger = Ledger()
        for kept in doomed:
            letter_id = kept.letter.letter_id
            ledger.move(kept.spot(), None)
            self._shelf.buried[letter_id] = max(kept.life.generation, self._shelf.buried.get(letter_id, 0))
            del self._shelf.letters[letter_id]
            self._shelf.outcomes.pop(letter_id, None)
        self._shelf.write(ledger)
        self._shelf.record(act, [_touched(kept, after="", state="purged") for kept in doomed])
        return len(doomed)

    async def tend(self) -> bool:
        return False

    async def aclose(self) -> None:
        """Nothing is held."""


def _touched(kept: Kept, *, after: str, state: str | None = None, **detail: object) -> Touched:
    if state is not None:
        detail["state"] = [kept.life.state.value, str(state)]
    return Touched(kept.letter.letter_id, kept.sent_sha256(), after, detail)
