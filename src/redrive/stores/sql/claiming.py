"""Claiming letters for a redrive: their next generation is spent before anything is published."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, LargeBinary, bindparam, select, type_coerce

from redrive.core.audit import Act
from redrive.core.letter import payload_hash
from redrive.core.life import Life, send
from redrive.core.redrive import ItemStatus, Redrive, RedriveState
from redrive.core.stored import Claimed
from redrive.stores.ledger import Spot
from redrive.stores.sql import auditing, edits, items
from redrive.stores.sql.among import among_given
from redrive.stores.sql.bulk import fetch_rows
from redrive.stores.sql.chunks import CHUNK
from redrive.stores.sql.letters import move
from redrive.stores.sql.rows import STATES, read_headers, to_headers
from redrive.stores.sql.tables import letter, letter_body, redrive_item
from redrive.stores.witness import Touched


class _Letter(NamedTuple):
    """What a claim reads of a letter, by place: many are claimed at once. `edit` is its latest, if it has one."""

    seq: int
    letter_id: str
    state: str
    generation: int
    version: int
    broker: str
    queue: str
    grp: str
    reason: str
    error_type: str
    fingerprint: str
    original_message_id: str
    payload: bytes | None
    payload_sha256: str
    headers: bytes | None
    key: bytes | None
    edit: Mapping[str, Any] | None

    @property
    def can_be_sent(self) -> bool:
        return self.edit is not None or self.payload is not None

    @property
    def sent_sha256(self) -> str:
        return self.payload_sha256 if self.edit is None else payload_hash(self.edit["body"])

    @property
    def life(self) -> Life:
        return Life(STATES[self.state], self.generation, self.version)

    @property
    def spot(self) -> Spot:
        return Spot(self.queue, STATES[self.state], self.error_type, self.reason, self.fingerprint)

    def claimed(self, *, generation: int, step: int) -> Claimed:
        edit = self.edit
        return Claimed(
            letter_id=self.letter_id,
            generation=generation,
            step=step,
            broker=self.broker,
            queue=self.queue,
            group=self.grp,
            body=self.payload if edit is None else edit["body"],
            headers=read_headers(self.headers) if edit is None else to_headers(edit["headers"]),
            key=self.key,
            origin=self.original_message_id,
            edits=0 if edit is None else edit["number"],
        )


_AS_KEPT = {"headers": type_coerce(letter_body.c.headers, LargeBinary)}
_COLUMNS = {**letter_body.c, **letter.c, **_AS_KEPT}
_LETTERS = (
    select(*(_COLUMNS[name] for name in _Letter._fields if name != "edit"))
    .join_from(letter, letter_body, letter.c.seq == letter_body.c.seq)
    .where(among_given(letter.c.letter_id, "letter_ids"))
)


class _Item(NamedTuple):
    letter_id: str
    generation: int
    version: int


_ITEMS = (
    select(*(redrive_item.c[name] for name in _Item._fields))
    .where(*(redrive_item.c[name] == bindparam(name) for name in ("redrive_id", "step", "status")))
    .order_by(redrive_item.c.place)
    .limit(bindparam("most"))
)


def claim(
    connection: Connection, redrive: Redrive, *, step: int, limit: int, operation_id: str, now: datetime
) -> list[Claimed]:
    """Claim up to `limit` letters, at most a thousand; those claimed before and never sent come first."""
    room = min(limit, CHUNK)
    again = _items(connection, redrive, step, ItemStatus.CLAIMED, limit=room)
    loaded = _load(connection, again)
    items.skip(connection, redrive.redrive_id, [item.letter_id for item in again if item.letter_id not in loaded])
    there = [item for item in again if item.letter_id in loaded]  # the others were removed meanwhile
    claimed = [loaded[item.letter_id].claimed(generation=item.generation, step=step) for item in there]
    while redrive.state is RedriveState.RUNNING and len(claimed) < room:
        planned = _items(connection, redrive, step, ItemStatus.PLANNED, limit=room - len(claimed))
        if not planned:
            break
        fresh = _spend(connection, redrive, planned)
        _record(connection, redrive, fresh, operation_id=operation_id, now=now)
        claimed.extend(one.claimed(generation=life.generation, step=step) for one, life in fresh)
    return claimed


def _items(connection: Connection, redrive: Redrive, step: int, status: ItemStatus, *, limit: int) -> list[_Item]:
    given = {"redrive_id": redrive.redrive_id, "step": step, "status": status.value, "most": limit}
    return [*map(_Item._make, fetch_rows(connection, _ITEMS, **given))]


def _spend(connection: Connection, redrive: Redrive, planned: Sequence[_Item]) -> list[tuple[_Letter, Life]]:
    """Spend the next generation of letters that are still as previewed; skip the others."""
    loaded = _load(connection, planned)
    out = items.out(connection, [*loaded])
    fresh: list[tuple[_Letter, Life]] = []
    skipped = []
    for item in planned:
        one = loaded.get(item.letter_id)
        life = None
        if one is not None and one.can_be_sent and item.letter_id not in out:
            life = send(one.life, previewed=item.version, over_cap=redrive.over_cap, again=redrive.again)
        if one is None or life is None:
            skipped.append(item.letter_id)
        else:
            fresh.append((one, life))
    move(connection, [(one.seq, one.spot, life) for one, life in fresh])
    claims = [(one.letter_id, life.generation, one.fingerprint) for one, life in fresh]
    items.claim(connection, redrive.redrive_id, claims)
    items.skip(connection, redrive.redrive_id, skipped)
    return fresh


def _load(connection: Connection, chosen: Sequence[_Item]) -> dict[str, _Letter]:
    if not chosen:
        return {}
    letter_ids = [item.letter_id for item in chosen]
    edited = edits.latest(connection, letter_ids)
    rows = fetch_rows(connection, _LETTERS, letter_ids=letter_ids)
    return {row[1]: _Letter._make((*row, edited.get(row[1]))) for row in rows}


def _record(
    connection: Connection, redrive: Redrive, fresh: Sequence[tuple[_Letter, Life]], *, operation_id: str, now: datetime
) -> None:
    generations = {life.generation for _, life in fresh}
    detail = {one: {"redrive": redrive.redrive_id, "generation": one} for one in generations}
    touched = [
        Touched(one.letter_id, one.payload_sha256, one.sent_sha256, detail[life.generation]) for one, life in fresh
    ]
    act = Act(who=redrive.by, verb="letters.redrive", at=now, operation_id=operation_id)
    auditing.record(connection, act, touched)
