"""What people changed before sending a letter back."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, func, select

from redrive.core.letter import payload_hash
from redrive.core.stored import Edit
from redrive.stores.sql.among import among, among_given
from redrive.stores.sql.bulk import fetch_rows
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.rows import to_headers
from redrive.stores.sql.tables import letter, letter_body, letter_edit

_last = (
    select(letter_edit.c.letter_id, func.max(letter_edit.c.number).label("number"))
    .where(among_given(letter_edit.c.letter_id, "letter_ids"))
    .group_by(letter_edit.c.letter_id)
    .subquery()
)
_same = and_(letter_edit.c.letter_id == _last.c.letter_id, letter_edit.c.number == _last.c.number)
_LATEST = select(letter_edit).join_from(letter_edit, _last, _same)


def of_letters(connection: Connection, letter_ids: Sequence[str]) -> dict[str, list[Edit]]:
    """The edits of letters, at most a thousand, oldest first."""
    found: defaultdict[str, list[Edit]] = defaultdict(list)
    order = (letter_edit.c.letter_id, letter_edit.c.number)
    for row in connection.execute(
        select(letter_edit).where(among(letter_edit.c.letter_id, letter_ids)).order_by(*order)
    ):
        edit = Edit(body=row.body, headers=to_headers(row.headers), by=row.by, edited_at=row.edited_at)
        found[row.letter_id].append(edit)
    return dict(found)


def latest(connection: Connection, letter_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The latest edit of each letter that has one."""
    rows = (
        dict(zip(letter_edit.c.keys(), row, strict=True))
        for row in fetch_rows(connection, _LATEST, letter_ids=letter_ids)
    )
    return {row["letter_id"]: row for row in rows}


def sent_hashes(connection: Connection, rows: Sequence[RowMapping]) -> dict[str, str]:
    """The hash of what would be sent back, for letters with their `payload_sha256`."""
    edited = latest(connection, [row["letter_id"] for row in rows])
    original = {row["letter_id"]: row["payload_sha256"] for row in rows}
    return original | {letter_id: payload_hash(row["body"]) for letter_id, row in edited.items()}


def sent_hashes_of(connection: Connection, letter_ids: Sequence[str]) -> dict[str, str]:
    """The same, for those of these letters that are there."""
    hashes: dict[str, str] = {}
    originals = select(letter.c.letter_id, letter_body.c.payload_sha256).join_from(
        letter, letter_body, letter.c.seq == letter_body.c.seq
    )
    for some in chunks(letter_ids):
        rows = connection.execute(originals.where(among(letter.c.letter_id, some))).mappings().all()
        hashes |= sent_hashes(connection, rows)
    return hashes
