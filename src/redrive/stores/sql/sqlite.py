"""What is SQLite's own: how a file is opened, upserts, the index on text. Everything else is plain SQL."""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Select,
    column,
    create_engine,
    event,
    func,
    literal_column,
    select,
    table,
    text,
)
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.pool import ConnectionPoolEntry

from redrive.stores.sql.tables import letter_text

__all__ = ["Insert", "create_text_index", "forget_text", "insert", "matching_text", "open_engine", "put_text"]

BUSY_SECONDS = 10
READERS = 4
WRITES = "redrive_writes"
_GRAM = 3
_MOST_GRAMS = 32
_index = table("letter_index", column("rowid"), column("text"))


def open_engine(path: Path) -> Engine:
    """An engine on a file; nothing is opened yet. Connections that write say so before they begin (`WRITES`)."""
    engine = create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),
        connect_args={"timeout": BUSY_SECONDS, "isolation_level": None},
        pool_size=READERS + 1,
        max_overflow=0,
        hide_parameters=True,  # payloads do not belong into messages
    )
    event.listen(engine, "connect", _settle_in)
    event.listen(engine, "begin", _begin)
    return engine


def _settle_in(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    try:
        for setting in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16384"):
            _insist(cursor, f"PRAGMA {setting}")
        cursor.close()
    except BaseException:
        connection.close()  # nobody else knows of it yet
        raise


def _begin(connection: Connection) -> None:
    # A transaction that reads first and writes later can be refused in the middle: a writer takes the lock at once.
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def create_text_index(connection: Connection) -> None:
    """An index on every three characters of `letter_text`. It knows neither places nor columns: a third of the size."""
    connection.exec_driver_sql(
        "CREATE VIRTUAL TABLE letter_index USING fts5("
        "text, content='letter_text', content_rowid='seq', tokenize='trigram case_sensitive 1', detail=none)"
    )


def put_text(connection: Connection, *, above: int, up_to: int) -> None:
    """Index the texts with these numbers."""
    connection.execute(
        text(
            "INSERT INTO letter_index (rowid, text)"
            " SELECT seq, text FROM letter_text WHERE seq > :above AND seq <= :up_to"
        ),
        {"above": above, "up_to": up_to},
    )


def forget_text(connection: Connection, seqs: Sequence[int]) -> None:
    """Take indexed texts out of the index, before they change or go."""
    connection.execute(
        text(
            "INSERT INTO letter_index (letter_index, rowid, text)"
            " SELECT 'delete', seq, text FROM letter_text WHERE seq = :seq"
        ),
        [{"seq": seq} for seq in seqs],
    )


def matching_text(wanted: str, *, above: int, below: int, indexed: int) -> Select[Any]:
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


def _holds(wanted: str) -> ColumnElement[bool]:
    return func.instr(letter_text.c.text, wanted) > 0


def _grams(wanted: str) -> str:
    """Every three characters that follow each other, as a query of FTS5."""
    grams = list(dict.fromkeys(wanted[start : start + _GRAM] for start in range(len(wanted) - _GRAM + 1)))
    return " AND ".join('"' + gram.replace('"', '""') + '"' for gram in grams[:_MOST_GRAMS])


def _insist(cursor: DBAPICursor, statement: str) -> None:
    """Those who open a new file at once are told that it is locked without waiting: only one of them makes it WAL."""
    for pause in _PAUSES:
        try:
            cursor.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            time.sleep(pause)
        else:
            return
    cursor.execute(statement)


_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
