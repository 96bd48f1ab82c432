"""One letter, and what people do to letters."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.core.letter import payload_hash
from redrive.core.life import LetterState, Life, discard
from redrive.core.query import Query
from redrive.core.stored import Edit, StoredLetter
from redrive.core.wire.record import to_pairs
from redrive.stores.editing import refuse_edit
from redrive.stores.ledger import Ledger, Spot
from redrive.stores.sql import auditing, edits, items, lives, outcomes, past_deaths, tallies, texts
from redrive.stores.sql.chunks import CHUNK, chunks
from redrive.stores.sql.rows import to_letter, to_life, to_spot
from redrive.stores.sql.searching import Search, select_all
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
        changed, told = edits.of_letters(connection, some), outcomes.of_letters(connection, some)
        sent = items.redrives_of(connection, some)
        for row in connection.execute(_WHOLE.where(letter.c.letter_id.in_(some))).mappings():
            name = row["letter_id"]
            found[name] = StoredLetter(
                letter=to_letter(row),
                life=to_life(row),
                note=row["note"],
                edits=tuple(changed.get(name, ())),
                outcomes=tuple(told.get(name, ())),
                redrive_ids=tuple(sent.get(name, ())),
            )
    return [found[name] for name in dict.fromkeys(letter_ids) if name in found]


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
    seqs = select_all(connection, search, limit=min(limit, CHUNK))
    found = connection.execute(select(letter.c.seq, letter.c.version).where(letter.c.seq.in_(seqs)))
    return {row.seq: row.version for row in found}


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
