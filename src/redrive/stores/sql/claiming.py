"""Claiming letters for a redrive: their next generation is spent before anything is published."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, select

from redrive.core.audit import Act
from redrive.core.letter import payload_hash
from redrive.core.life import Life, send
from redrive.core.ports.store import Claimed
from redrive.core.redrive import ItemStatus, Redrive, RedriveState
from redrive.stores.sql import auditing, edits, items
from redrive.stores.sql.among import among
from redrive.stores.sql.chunks import CHUNK
from redrive.stores.sql.letters import move
from redrive.stores.sql.rows import to_headers, to_life
from redrive.stores.sql.tables import letter, letter_body, redrive_item
from redrive.stores.witness import Touched

_NAMES = ("seq", "letter_id", "state", "generation", "version", "broker", "queue", "grp", "reason", "error_type")
_LETTERS = select(
    *(letter.c[name] for name in (*_NAMES, "fingerprint", "original_message_id")),
    *(letter_body.c[name] for name in ("payload", "payload_sha256", "headers", "key")),
).join_from(letter, letter_body, letter.c.seq == letter_body.c.seq)

_ITEMS = select(redrive_item.c.letter_id, redrive_item.c.generation, redrive_item.c.version)


class _Loaded(NamedTuple):
    """A letter with its latest edit, if it has one."""

    row: RowMapping
    edit: RowMapping | None

    @property
    def can_be_sent(self) -> bool:
        return self.edit is not None or self.row["payload"] is not None

    @property
    def sent_sha256(self) -> str:
        return str(self.row["payload_sha256"]) if self.edit is None else payload_hash(self.edit["body"])

    def claimed(self, *, generation: int, step: int) -> Claimed:
        row, edit = self
        return Claimed(
            letter_id=row["letter_id"],
            generation=generation,
            step=step,
            broker=row["broker"],
            queue=row["queue"],
            group=row["grp"],
            body=row["payload"] if edit is None else edit["body"],
            headers=to_headers(row["headers"] if edit is None else edit["headers"]),
            key=row["key"],
            origin=row["original_message_id"],
            edits=0 if edit is None else edit["number"],
        )


def claim(
    connection: Connection, redrive: Redrive, *, step: int, limit: int, operation_id: str, now: datetime
) -> list[Claimed]:
    """Claim up to `limit` letters, at most a thousand; those claimed before and never sent come first."""
    room = min(limit, CHUNK)
    again = _items(connection, redrive, step, ItemStatus.CLAIMED, limit=room)
    loaded = _load(connection, again)
    claimed = [loaded[item["letter_id"]].claimed(generation=item["generation"], step=step) for item in again]
    while redrive.state is RedriveState.RUNNING and len(claimed) < room:
        planned = _items(connection, redrive, step, ItemStatus.PLANNED, limit=room - len(claimed))
        if not planned:
            break
        fresh = _spend(connection, redrive, planned)
        _record(connection, redrive, fresh, operation_id=operation_id, now=now)
        claimed.extend(one.claimed(generation=life.generation, step=step) for one, life in fresh)
    return claimed


def _items(
    connection: Connection, redrive: Redrive, step: int, status: ItemStatus, *, limit: int
) -> Sequence[RowMapping]:
    where = (redrive_item.c.redrive_id == redrive.redrive_id, redrive_item.c.step == step)
    statement = _ITEMS.where(*where, redrive_item.c.status == status.value)
    return connection.execute(statement.order_by(redrive_item.c.place).limit(limit)).mappings().all()


def _spend(connection: Connection, redrive: Redrive, planned: Sequence[RowMapping]) -> list[tuple[_Loaded, Life]]:
    """Spend the next generation of letters that are still as previewed; skip the others."""
    loaded = _load(connection, planned)
    out = items.out(connection, [*loaded])
    fresh: list[tuple[_Loaded, Life]] = []
    skipped = []
    for item in planned:
        one = loaded.get(item["letter_id"])
        life = None
        if one is not None and one.can_be_sent and item["letter_id"] not in out:
            life = send(to_life(one.row), previewed=item["version"], over_cap=redrive.over_cap, again=redrive.again)
        if one is None or life is None:
            skipped.append(item["letter_id"])
        else:
            fresh.append((one, life))
    move(connection, [(one.row, life) for one, life in fresh])
    items.claim(connection, redrive.redrive_id, [(one.row, life.generation) for one, life in fresh])
    items.skip(connection, redrive.redrive_id, skipped)
    return fresh


def _load(connection: Connection, chosen: Sequence[RowMapping]) -> dict[str, _Loaded]:
    letter_ids = [item["letter_id"] for item in chosen]
    edited = edits.latest(connection, letter_ids)
    rows = connection.execute(_LETTERS.where(among(letter.c.letter_id, letter_ids))).mappings().all()
    return {row["letter_id"]: _Loaded(row, edited.get(row["letter_id"])) for row in rows}


def _record(
    connection: Connection,
    redrive: Redrive,
    fresh: Sequence[tuple[_Loaded, Life]],
    *,
    operation_id: str,
    now: datetime,
) -> None:
    touched = [
        Touched(
            one.row["letter_id"],
            one.row["payload_sha256"],
            one.sent_sha256,
            {"redrive": redrive.redrive_id, "generation": life.generation},
        )
        for one, life in fresh
    ]
    act = Act(who=redrive.by, verb="letters.redrive", at=now, operation_id=operation_id)
    auditing.record(connection, act, touched)
