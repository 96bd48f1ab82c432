"""SQLite's index on text: FTS5 over every three characters. It follows behind, see `texts`."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, column, func, literal_column, select, table, text

from redrive.stores.sql.tables import letter_text

_GRAM = 3
_MOST_GRAMS = 16
_index = table("letter_index", column("rowid"), column("text"))


def create_index(connection: Connection) -> None:
    """An index on every three characters of `letter_text`. It knows neither places nor columns: a third of the size."""
    connection.exec_driver_sql(
        "CREATE VIRTUAL TABLE letter_index USING fts5("
        "text, content='letter_text', content_rowid='seq', tokenize='trigram case_sensitive 1', detail=none)"
    )


def put(connection: Connection, *, above: int, up_to: int) -> None:
    """Index the texts with these numbers."""
    connection.execute(
        text(
            "INSERT INTO letter_index (rowid, text)"
            " SELECT seq, text FROM letter_text WHERE seq > :above AND seq <= :up_to"
        ),
        {"above": above, "up_to": up_to},
    )


def forget(connection: Connection, seqs: Sequence[int]) -> None:
    """Take indexed texts out of the index, before they change or go."""
    connection.execute(
        text(
            "INSERT INTO letter_index (letter_index, rowid, text)"
            " SELECT 'delete', seq, text FROM letter_text WHERE seq = :seq"
        ),
        [{"seq": seq} for seq in seqs],
    )


def matching(wanted: str, *, above: int, below: int, indexed: int) -> Select[Any]:
    """The numbers, between these two, of texts that hold `wanted`: by the index as far as it goes."""
    within = (letter_text.c.seq > above, letter_text.c.seq < below, _holds(wanted))
    scanned = select(letter_text.c.seq).where(*within)
    if len(wanted) < _GRAM or indexed <= above:
        return scanned
    rowid: ColumnElement[int] = _index.c.rowid
    found = (
        select(rowid)
        .where(literal_column("letter_index").op("MATCH")(_grams(wanted)), rowid > above, rowid < below)
        .join_from(_index, letter_text, letter_text.c.seq == rowid)
        .where(_holds(wanted))
    )
    if indexed >= below - 1:
        return found
    rest = scanned.where(letter_text.c.seq > indexed)
    return select(found.union_all(rest).subquery().c[0])


def few(connection: Connection, wanted: str, *, most: int, indexed: int) -> Sequence[int] | None:
    """The numbers of all texts that hold `wanted`; None if `most` or more may do so, also those not indexed yet."""
    if len(wanted) < _GRAM:
        return None
    matches = select(_index.c.rowid).where(literal_column("letter_index").op("MATCH")(_grams(wanted)))
    found = [*connection.execute(matches.limit(most)).scalars()]
    behind = [*connection.execute(select(letter_text.c.seq).where(letter_text.c.seq > indexed).limit(most)).scalars()]
    if len(found) + len(behind) >= most:
        return None
    holding = select(letter_text.c.seq).where(letter_text.c.seq.in_(found + behind), _holds(wanted))
    return [*connection.execute(holding).scalars()]


def _holds(wanted: str) -> ColumnElement[bool]:
    return func.instr(letter_text.c.text, wanted) > 0


def _grams(wanted: str) -> str:
    """Three characters that follow each other, at all places of a short text and some of a long one, for FTS5."""
    grams = list(dict.fromkeys(wanted[start : start + _GRAM] for start in range(len(wanted) - _GRAM + 1)))
    some = grams[:: -(-len(grams) // _MOST_GRAMS)]
    return " AND ".join('"' + gram.replace('"', '""') + '"' for gram in some)
