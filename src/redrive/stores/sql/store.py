"""The letter store in an SQL database: every call is one transaction, or one for each thousand letters."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from redrive.core.access import Token
from redrive.core.audit import Act, AuditRecord
from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.core.ports import Clock
from redrive.core.query import Query
from redrive.core.redrive import ENDED, Planned, Progress, Redrive, RedriveOutcome, RedriveState
from redrive.core.stored import (
    Claimed,
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
from redrive.stores.sql import (
    auditing,
    collecting,
    counting,
    letters,
    memos,
    redrives,
    searching,
    selecting,
    texts,
    tokens,
)
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.database import open_database


class SqlStore:
    """A `Store` on an SQLite file, which is created if it is not there, or in the PostgreSQL at a `postgresql://` URL.

    Safe for many tasks and many processes. Nothing is opened until the first call, which raises `StoreError` if what is
    there comes from a later version of Redrive.
    """

    def __init__(self, place: str | Path, *, clock: Clock) -> None:
        self._database = open_database(place)
        self._clock = clock

    async def collect(
        self, letters: Sequence[DeadLetter], outcomes: Sequence[RedriveOutcome] = (), *, act: Act | None = None
    ) -> Collected:
        if not letters and not outcomes and act is None:
            return Collected()
        return await self._database.write(collecting.collect, letters, outcomes, act=act)

    async def get(self, letter_id: str) -> StoredLetter:
        return await self._database.read(letters.get, letter_id)

    async def get_many(self, letter_ids: Sequence[str]) -> Sequence[StoredLetter]:
        return await self._database.read(letters.get_many, letter_ids)

    async def find(
        self, query: Query, *, limit: int = 50, after: str | None = None, patience: timedelta | None = None
    ) -> Page[LetterRow]:
        return await self._database.read(searching.find, query, limit=limit, after=after, patience=patience)

    async def read(self, query: Query, *, limit: int, after: str | None = None, most: int) -> Page[StoredLetter]:
        return await self._database.read(letters.read, query, limit=limit, after=after, most=most)

    async def select(self, query: Query, *, limit: int, upto: str | None = None) -> Sequence[Selected]:
        return await self._database.read(selecting.select_rows, query, limit=limit, upto=upto)

    async def select_named(self, letter_ids: Sequence[str]) -> Sequence[Selected]:
        return await self._database.read(selecting.select_named, letter_ids)

    async def count(self, query: Query, *, cap: int = 10_000, patience: timedelta | None = None) -> Count:
        return await self._database.read(searching.count, query, cap=cap, patience=patience)

    async def stats(self, queue: str | None = None, *, states: Sequence[LetterState] = ()) -> Stats:
        return await self._database.read(counting.stats, queue, states=states)

    async def trends(
        self, *, since: datetime, until: datetime | None = None, queue: str | None = None, by: Dimension
    ) -> Sequence[tuple[datetime, Mapping[str, int]]]:
        return await self._database.read(counting.trends, since=since, until=until, queue=queue, by=by)

    async def news(self, *, after: str | None, limit: int = 100) -> Page[LetterRow]:
        return await self._database.read(searching.news, after=after, limit=limit)

    async def incidents(
        self,
        *,
        state: str | None = "open",
        limit: int = 50,
        after: str | None = None,
        since: datetime | None = None,
    ) -> Page[IncidentRow]:
        return await self._database.read(counting.incidents, state=state, limit=limit, after=after, since=since)

    async def incident(self, incident_id: str) -> IncidentRow:
        return await self._database.read(counting.one_incident, incident_id)

    async def incident_hours(
        self, incident_ids: Sequence[str], *, since: datetime
    ) -> Mapping[str, Sequence[tuple[datetime, int]]]:
        return await self._database.read(counting.incident_hours, incident_ids, since=since)

    async def change_incident(self, incident_id: str, change: IncidentChange, *, act: Act) -> IncidentRow:
        return await self._database.write(counting.change_incident, incident_id, change, act=act)

    async def discard(self, letters_: Mapping[str, int], *, act: Act) -> Sequence[str]:
        done: list[str] = []
        for some in chunks([*letters_.items()]):
            done.extend(await self._database.write(letters.discard_some, dict(some), act=act))
        return done

    async def note(self, letter_id: str, text: str, *, act: Act) -> None:
        await self._database.write(letters.note, letter_id, text, act=act)

    async def edit(self, letter_id: str, edit: Edit, *, version: int, act: Act) -> int:
        return await self._database.write(letters.edit, letter_id, edit, version=version, act=act)

    async def purge(self, query: Query, *, before: datetime, limit: int, act: Act) -> int:
        done = 0
        while True:
            # Looking takes long and needs no lock; what has changed meanwhile is left.
            found = await self._database.read(letters.doomed, query, before=before, limit=limit - done)
            purged = await self._database.write(letters.purge_some, found, act=act)
            done += purged
            if not purged or done >= limit:
                return done

    async def tend(self) -> bool:
        return await self._database.write(texts.index_more)

    async def create(
        self, redrive: Redrive, items: Sequence[Planned], *, act: Act, owner: str = "", until: datetime | None = None
    ) -> None:
        chosen = [*{item.letter_id: item for item in items}.values()]
        for some in chunks(chosen):
            await self._database.write(redrives.plan, redrive.redrive_id, some)
        await self._database.write(redrives.create, redrive, count=len(chosen), act=act, owner=owner, until=until)

    async def redrive(self, redrive_id: str) -> Redrive:
        return await self._database.read(redrives.one, redrive_id)

    async def redrives(self, *, limit: int = 50, after: str | None = None) -> Page[Redrive]:
        return await self._database.read(redrives.latest, limit=limit, after=after)

    async def unfinished(self) -> Sequence[Redrive]:
        return await self._database.read(redrives.unfinished)

    async def claim(self, redrive_id: str, *, step: int, limit: int) -> Sequence[Claimed]:
        return await self._database.write(redrives.claim, redrive_id, step=step, limit=limit, now=self._clock.now())

    async def take(self, redrive_id: str, *, owner: str, now: datetime, until: datetime) -> bool:
        return await self._database.write(redrives.take, redrive_id, owner=owner, now=now, until=until)

    async def sent(self, redrive_id: str, messages: Mapping[str, str], *, at: datetime) -> None:
        await self._database.write(redrives.sent, redrive_id, messages, at=at)

    async def progress(self, redrive_id: str) -> Progress:
        return await self._database.read(redrives.progress, redrive_id)

    async def expire(self, redrive_id: str, *, before: datetime, quiet: bool) -> int:
        done = 0
        while some := await self._database.write(redrives.expire_some, redrive_id, before=before, quiet=quiet):
            done += some
        return done

    async def mark(
        self, redrive_id: str, state: RedriveState, *, why: str, act: Act, accepted: int | None = None
    ) -> Redrive:
        after = await self._database.write(redrives.mark, redrive_id, state, why=why, act=act, accepted=accepted)
        while after.state in ENDED and (await self._database.write(redrives.leave_some, redrive_id)) > 0:
            pass
        return after

    async def record(self, act: Act, *, letter_ids: Sequence[str] = ()) -> None:
        await self._database.write(auditing.record_unchanged, act, letter_ids)

    async def records(
        self, *, limit: int = 50, after: str | None = None, letter_id: str | None = None
    ) -> Page[AuditRecord]:
        return await self._database.read(auditing.records, limit=limit, after=after, letter_id=letter_id)

    async def verify(self) -> AuditRecord | None:
        return await self._database.read(auditing.verify)

    async def put_token(self, token: Token, *, sha256: str, act: Act) -> None:
        await self._database.write(tokens.put, token, sha256=sha256, act=act)

    async def token_by_hash(self, sha256: str) -> Token | None:
        return await self._database.read(tokens.by_hash, sha256)

    async def tokens(self) -> Sequence[Token]:
        return await self._database.read(tokens.every)

    async def revoke_token(self, token_id: str, *, at: datetime, act: Act) -> Token:
        return await self._database.write(tokens.revoke, token_id, at=at, act=act)

    async def take_memo(self, name: str, *, owner: str, now: datetime, until: datetime) -> bytes | None:
        return await self._database.write(memos.take, name, owner=owner, now=now, until=until)

    async def write_memo(self, name: str, body: bytes, *, owner: str) -> bool:
        return await self._database.write(memos.write, name, body, owner=owner)

    async def aclose(self) -> None:
        await self._database.aclose()
