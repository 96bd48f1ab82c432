"""The searchable copy of each letter. Its index follows behind: indexing costs more than collecting, and can wait.

Search uses the index as far as it goes and looks through the rest, so what it finds is always the same. SQLite has an
index beside the texts, up to a number; on PostgreSQL a text that is indexed has moved to a table of its own.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, delete, select, update

from redrive.core.letter import DeadLetter
from redrive.core.query import searchable_text
from redrive.stores.sql import fts5, trigrams
from redrive.stores.sql.bulk import insert_columns
from redrive.stores.sql.tables import counter, letter_text
from redrive.stores.sql.upsert import insert as upsert

INDEXED = "text"
STEP = 1000
FEW = 1000


def add(connection: Connection, seqs: Sequence[int], letters: Sequence[DeadLetter]) -> None:
    """Keep the texts of new letters, each with its number."""
    insert_columns(connection, letter_text, ("seq", "text"), [seqs, [*map(searchable_text, letters)]])


def replace(connection: Connection, seq: int, told: DeadLetter) -> None:
    """The letter says something else now."""
    if _on_postgresql(connection):
        trigrams.replace(connection, seq, searchable_text(told))
        return
    indexed = seq <= indexed_up_to(connection)
    if indexed:
        fts5.forget(connection, [seq])
    connection.execute(update(letter_text).where(letter_text.c.seq == seq).values(text=searchable_text(told)))
    if indexed:
        fts5.put(connection, above=seq - 1, up_to=seq)


def remove(connection: Connection, seqs: Sequence[int]) -> None:
    """The letters are gone."""
    if _on_postgresql(connection):
        trigrams.remove(connection, seqs)
    end = indexed_up_to(connection)
    if indexed := [seq for seq in seqs if seq <= end]:
        fts5.forget(connection, indexed)
    connection.execute(delete(letter_text).where(letter_text.c.seq.in_(seqs)))


def index_more(connection: Connection) -> bool:
    """Index the next texts; True if there are more."""
    if _on_postgresql(connection):
        return trigrams.index_more(connection, most=STEP)
    start = indexed_up_to(connection)
    end = last_number(connection)
    if start >= end:
        return False
    up_to = min(start + STEP, end)
    fts5.put(connection, above=start, up_to=up_to)
    statement = upsert(counter).values(name=INDEXED, last=up_to)
    connection.execute(statement.on_conflict_do_update(index_elements=[counter.c.name], set_={"last": up_to}))
    return up_to < end


def matching(connection: Connection, wanted: str, *, above: int, below: int) -> Select[Any]:
    """The numbers, between these two, of texts that hold `wanted`."""
    if _on_postgresql(connection):
        return trigrams.matching(connection, wanted, above=above, below=below)
    return fts5.matching(wanted, above=above, below=below, indexed=indexed_up_to(connection))


def few(connection: Connection, wanted: str) -> Sequence[int] | None:
    """The numbers of all texts that hold `wanted`, if an index says quickly that they are few."""
    if _on_postgresql(connection):
        return trigrams.few(connection, wanted, most=FEW)
    return fts5.few(connection, wanted, most=FEW, indexed=indexed_up_to(connection))


def create_index(connection: Connection) -> None:
    """The index that the database at hand can have."""
    (trigrams if _on_postgresql(connection) else fts5).create_index(connection)


def _on_postgresql(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


def indexed_up_to(connection: Connection) -> int:
    """The number of the last letter whose text is in the index."""
    return _last(connection, INDEXED)


def last_number(connection: Connection) -> int:
    """The number of the last letter ever collected."""
    return _last(connection, "letter")


def _last(connection: Connection, name: str) -> int:
    return connection.execute(select(counter.c.last).where(counter.c.name == name)).scalar() or 0
