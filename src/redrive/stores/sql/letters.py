"""One letter, and what people do to letters."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce
from itertools import accumulate
from operator import add
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, func, insert, select, update

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.letter import payload_hash
from redrive.core.life import LetterState, Life, discard
from redrive.core.query import Query
from redrive.core.stored import Edit, Page, StoredLetter
from redrive.core.wire.record import to_pairs
from redrive.stores.editing import refuse_edit
from redrive.stores.ledger import Ledger, Spot
from redrive.stores.sql import auditing, edits, items, lives, outcomes, past_deaths, tallies, texts
from redrive.stores.sql.among import among
from redrive.stores.sql.chunks import CHUNK, chunks
from redrive.stores.sql.rows import to_letter, to_life, to_spot
from redrive.stores.sql.searching import Search, find_numbers, look_for
from redrive.stores.sql.tables import letter, letter_body, letter_edit, outcome, tombstone
from redrive.stores.sql.upsert import insert as upsert
from redrive.stores.witness import Touched

_WHOLE = select(letter, letter_body).join_from(letter, letter_body, letter.c.seq == letter_body.c.seq)


def get(connection: Connection, letter_id: str) -> StoredLetter:
    """One letter whole. Raises `LetterNotFound`."""
    found = get_many(connection, [letter_id])
    if not found:
        raise _not_found(letter_id)
    return found[0]


def get_many(connection: Connection, letter_ids: Sequence[str]) -> list[StoredLetter]:
    """Letters whole, in the order asked, each once; those that are not there are left out."""
    found: dict[str, StoredLetter] = {}
    for some in chunks(letter_ids):
        rows = connection.execute(_WHOLE.where(among(letter.c.letter_id, some))).mappings().all()
        found |= {one.letter.letter_id: one for one in _whole(connection, rows)}
    return [found[name] for name in dict.fromkeys(letter_ids) if name in found]


def read(connection: Connection, query: Query, *, limit: int, after: str | None, most: int) -> Page[StoredLetter]:
    """A page of letters whole, newest first, until they have so many bytes together."""
    page = find_numbers(connection, query, limit=limit, after=after)
    seqs = _until(connection, page.rows, most=most)
    rows = [row for some in chunks(seqs) for row in connection.execute(_WHOLE.where(letter.c.seq.in_(some))).mappings()]
    rows.sort(key=lambda row: -int(row["seq"]))
    return Page(_whole(connection, rows), page.after if len(seqs) == len(page.rows) else str(seqs[-1]))


def _until(connection: Connection, seqs: Sequence[int], *, most: int) -> Sequence[int]:
    """The first of these letters that have so many bytes together, asked for without reading any."""
    sizes = {
        row.seq: row.size for some in chunks(seqs) for row in connection.execute(_SIZES.where(letter.c.seq.in_(some)))
    }
    together = accumulate(sizes[seq] for seq in seqs)
    enough = next((number for number, size in enumerate(together, 1) if size >= most), len(seqs))
    return seqs[:enough]


def _size(*columns: ColumnElement[Any]) -> ColumnElement[int]:
    return reduce(add, (func.coalesce(func.length(column), 0) for column in columns))


_EDITED = select(func.coalesce(func.sum(func.length(letter_edit.c.body)), 0)).where(
    letter_edit.c.letter_id == letter.c.letter_id
)
_CONTENT = _size(letter_body.c.payload, letter_body.c.key, letter_body.c.headers) + _EDITED.scalar_subquery()
_SIZES = select(letter.c.seq, _CONTENT.label("size")).join_from(letter, letter_body, letter.c.seq == letter_body.c.seq)


def _whole(connection: Connection, rows: Sequence[RowMapping]) -> list[StoredLetter]:
    """Letters with all that belongs to them, in this order."""
    names = [row["letter_id"] for row in rows]
    changed, told = edits.of_letters(connection, names), outcomes.of_letters(connection, names)
    sent = items.redrives_of(connection, names)
    return [
        StoredLetter(
            letter=to_letter(row),
            life=to_life(row),
            note=row["note"],
            edits=tuple(changed.get(row["letter_id"], ())),
            outcomes=tuple(told.get(row["letter_id"], ())),
            redrive_ids=tuple(sent.get(row["letter_id"], ())),
        )
        for row in rows
    ]


def discard_some(connection: Connection, letters: Mapping[str, int], *, act: Act) -> list[str]:
    """Discard letters that are still of the version given, at most a thousand."""
    found = _by_id(connection, [*letters])
    moves = []
    for letter_id, version in letters.items():
        row = found.get(letter_id)
        life = discard(to_life(row)) if row is not None and row["version"] == version else None
        if row is not None and life is not None:
            moves.append((row, life))
    sent = edits.sent_hashes(connection, [row for row, _ in moves])
    touched = [
        Touched(row["letter_id"], sent[row["letter_id"]], sent[row["letter_id"]], _from_to(row, life.state))
        for row, life in moves
    ]
    move(connection, [(row["seq"], to_spot(row), life) for row, life in moves])
    auditing.record(connection, act, touched)
    return [row["letter_id"] for row, _ in moves]


def move(connection: Connection, moves: Sequence[tuple[int, Spot, Life]]) -> None:
    """Give the letters with these numbers, each counted at its spot so far, a new life, and count them there."""
    if not moves:
        return
    ledger = Ledger()
    for (spot, state), times in Counter((spot, life.state) for _, spot, life in moves).items():
        ledger.move(spot, spot.in_state(state), times=times)
    lives.put(connection, ((seq, life) for seq, _, life in moves))
    tallies.write(connection, ledger)


def note(connection: Connection, letter_id: str, text: str, *, act: Act) -> None:
    """Put a note on a letter."""
    row = _one(connection, letter_id)
    connection.execute(update(letter).where(letter.c.seq == row["seq"]).values(note=text))
    sent = edits.sent_hashes(connection, [row])[letter_id]
    auditing.record(connection, act, [Touched(letter_id, sent, sent, {"note": text})])


def edit(connection: Connection, letter_id: str, edited: Edit, *, version: int, act: Act) -> int:
    """Keep an edited form beside the original; its number."""
    row = _one(connection, letter_id)
    life = to_life(row)
    refuse_edit(letter_id, life, version=version)
    before = edits.sent_hashes(connection, [row])[letter_id]
    number = len(edits.of_letters(connection, [letter_id]).get(letter_id, ())) + 1
    values: dict[str, Any] = {"letter_id": letter_id, "number": number, "body": edited.body}
    values |= {"headers": to_pairs(edited.headers), "by": edited.by, "edited_at": edited.edited_at}
    connection.execute(insert(letter_edit).values(values))
    move(connection, [(row["seq"], to_spot(row), life.to(life.state))])
    touched = Touched(letter_id, before, payload_hash(edited.body), {"number": number})
    auditing.record(connection, act, [touched])
    return number


def doomed(connection: Connection, query: Query, *, before: datetime, limit: int) -> dict[int, int]:
    """Letters that failed before then and are not out, at most a thousand: number and version of each."""
    to_at = before if query.to_at is None else min(before, query.to_at)
    states = tuple(state for state in query.states or LetterState if state is not LetterState.REDRIVING)
    if not states:
        return {}
    search = Search(replace(query, to_at=to_at, states=states), newest_first=False)
    rows = look_for(connection, search, limit=min(limit, CHUNK), columns=("seq", "version"))
    return {row[0]: row[1] for row in rows}


def purge_some(connection: Connection, chosen: Mapping[int, int], *, act: Act) -> int:
    """Remove these letters if they are still of the version given; leave tombstones."""
    found = connection.execute(_BRIEF.where(letter.c.seq.in_([*chosen])).order_by(letter.c.seq)).mappings()
    rows = [row for row in found if row["version"] == chosen[row["seq"]]]
    sent = edits.sent_hashes(connection, rows)
    touched = [Touched(row["letter_id"], sent[row["letter_id"]], "", _from_to(row, "purged")) for row in rows]
    _remove(connection, rows)
    auditing.record(connection, act, touched)
    return len(rows)


def _remove(connection: Connection, rows: Sequence[RowMapping]) -> None:
    if not rows:
        return
    ledger = Ledger()
    for row in rows:
        ledger.move(to_spot(row), None)
    seqs, letter_ids = [row["seq"] for row in rows], [row["letter_id"] for row in rows]
    texts.remove(connection, seqs)
    connection.execute(delete(letter_body).where(letter_body.c.seq.in_(seqs)))
    connection.execute(delete(letter).where(letter.c.seq.in_(seqs)))
    connection.execute(delete(letter_edit).where(letter_edit.c.letter_id.in_(letter_ids)))
    connection.execute(delete(outcome).where(outcome.c.letter_id.in_(letter_ids)))
    past_deaths.forget(connection, letter_ids)
    grave = upsert(tombstone)
    grave = grave.on_conflict_do_update(
        index_elements=[tombstone.c.letter_id], set_={"generation": grave.excluded.generation}
    )
    graves = sorted((row["letter_id"], row["generation"]) for row in rows)
    connection.execute(grave, [{"letter_id": name, "generation": generation} for name, generation in graves])
    tallies.write(connection, ledger)


_BRIEF = select(letter, letter_body.c.payload_sha256).join_from(letter, letter_body, letter.c.seq == letter_body.c.seq)


def _by_id(connection: Connection, letter_ids: Sequence[str]) -> dict[str, RowMapping]:
    rows = connection.execute(_BRIEF.where(letter.c.letter_id.in_(letter_ids))).mappings()
    return {row["letter_id"]: row for row in rows}


def _one(connection: Connection, letter_id: str) -> RowMapping:
    found = _by_id(connection, [letter_id]).get(letter_id)
    if found is None:
        raise _not_found(letter_id)
    return found


def _not_found(letter_id: str) -> LetterNotFound:
    return LetterNotFound(f"no letter {letter_id!r} is in the store")


def _from_to(row: RowMapping, state: str) -> dict[str, Any]:
    return {"state": [row["state"], str(state)]}
