"""Claiming letters for a redrive: their next generation is spent before anything is published."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, LargeBinary, bindparam, select, type_coerce

from redrive.core.audit import Act
from redrive.core.letter import payload_hash
from redrive.core.life import Life, send
from redrive.core.redrive import Redrive, RedriveState
from redrive.core.stored import Claimed
from redrive.stores.ledger import Spot
from redrive.stores.sql import auditing, edits, items
from redrive.stores.sql.bulk import fetch_rows
from redrive.stores.sql.chunks import CHUNK
from redrive.stores.sql.items import Item
from redrive.stores.sql.letters import move
from redrive.stores.sql.rows import STATES, life_of, read_headers, to_headers
from redrive.stores.sql.tables import DUE, letter, letter_body, redrive_item
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
    def spot(self) -> Spot:
        return Spot(self.queue, STATES[self.state], self.error_type, self.reason, self.fingerprint)

    def claimed(self, *, generation: int, step: int) -> Claimed:
        if self.edit is None:
            body, headers, edits = self.payload, read_headers(self.headers), 0
        else:
            body, headers, edits = self.edit["body"], to_headers(self.edit["headers"]), self.edit["number"]
        spent = (self.letter_id, generation, step)
        return Claimed(
            *spent, self.broker, self.queue, self.grp, body, headers, self.key, self.original_message_id, edits
        )


class _Turn(NamedTuple):
    """An item whose turn it is, and its letter, if it is still there."""

    item: Item
    previewed: int  # the version of the letter then
    generation: int | None  # that was spent, if it was claimed before
    letter: _Letter | None


_AS_KEPT = {"headers": type_coerce(letter_body.c.headers, LargeBinary)}
_COLUMNS = {**letter_body.c, **letter.c, **_AS_KEPT}
_READ = tuple(_COLUMNS[name] for name in _Letter._fields if name != "edit")
_ITEM = tuple(redrive_item.c[name] for name in (*Item._fields, "version", "generation"))
_TURNS = (
    select(*_ITEM, *_READ)
    .select_from(redrive_item)
    .outerjoin(letter, letter.c.letter_id == redrive_item.c.letter_id)
    .outerjoin(letter_body, letter_body.c.seq == letter.c.seq)
    .where(*(redrive_item.c[name] == bindparam(name) for name in ("redrive_id", "step")))
    .where(DUE, redrive_item.c.seq > bindparam("behind"))
    .order_by(redrive_item.c.seq)
    .limit(bindparam("most"))
)


def claim(
    connection: Connection, redrive: Redrive, *, step: int, limit: int, operation_id: str, now: datetime
) -> list[Claimed]:
    """Claim up to `limit` letters, at most a thousand; those claimed before and never sent come first.

    These had their turns before all that are still planned: letters are claimed in turn.
    """
    room, behind = min(limit, CHUNK), -1
    claimed: list[Claimed] = []
    while len(claimed) < room:
        turns = _turns(connection, redrive.redrive_id, step, behind=behind, limit=room - len(claimed))
        again = [turn for turn in turns if turn.generation is not None]
        items.skip(connection, [turn.item for turn in again if turn.letter is None])  # removed meanwhile
        claimed += [one.claimed(generation=spent, step=step) for _, _, spent, one in again if one and spent]
        planned = [turn for turn in turns if turn.generation is None]
        if planned and redrive.state is RedriveState.RUNNING:
            fresh = _spend(connection, redrive, planned)
            _record(connection, redrive, fresh, operation_id=operation_id, now=now)
            claimed += [one.claimed(generation=life.generation, step=step) for one, life in fresh]
        elif planned or not turns:
            break
        behind = turns[-1].item.seq
    return claimed


def _turns(connection: Connection, redrive_id: str, step: int, *, behind: int, limit: int) -> list[_Turn]:
    rows = fetch_rows(connection, _TURNS, redrive_id=redrive_id, step=step, behind=behind, most=limit)
    size = len(_ITEM)
    there = [row[size + 1] for row in rows if row[size] is not None]
    edited = edits.latest(connection, there) if there else {}
    return [
        _Turn(
            Item._make(row[: size - 2]),
            row[size - 2],
            row[size - 1],
            None if row[size] is None else _Letter._make((*row[size:], edited.get(row[size + 1]))),
        )
        for row in rows
    ]


def _spend(connection: Connection, redrive: Redrive, turns: Sequence[_Turn]) -> list[tuple[_Letter, Life]]:
    """Spend the next generation of letters that are still as previewed; skip the others."""
    sent_before = [one.letter_id for _, _, _, one in turns if one is not None and one.generation]
    out = items.out(connection, sent_before)
    fresh: list[tuple[_Letter, Life]] = []
    claims, skipped = [], []

    @cache  # the letters of a batch have few lives
    def sent(before: Life, previewed: int) -> Life | None:
        return send(before, previewed=previewed, over_cap=redrive.over_cap, again=redrive.again)

    for item, previewed, _, one in turns:
        life = None
        if one is not None and one.can_be_sent and one.letter_id not in out:
            life = sent(life_of(one.state, one.generation, one.version), previewed)
        if one is None or life is None:
            skipped.append(item)
        else:
            fresh.append((one, life))
            claims.append((item, life.generation, one.fingerprint))
    move(connection, [(one.seq, one.spot, life) for one, life in fresh])
    items.claim(connection, claims)
    items.skip(connection, skipped)
    return fresh


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
