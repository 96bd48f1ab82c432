"""PostgreSQL's index on text: a GIN index over every three characters, where the extension pg_trgm may be had.

The server keeps it up to date by itself. Without it a search finds the same, and looks through every text.
"""

from typing import Any

from sqlalchemy import Connection, Select, select, text
from sqlalchemy.exc import DBAPIError

from redrive.stores.sql.tables import letter_text


def create_index(connection: Connection) -> None:
    """The extension and the index; neither, if the server has no such extension or this user may not create it."""
    try:
        with connection.begin_nested():
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
            connection.execute(text("CREATE INDEX letter_text_grams ON letter_text USING gin (text gin_trgm_ops)"))
    except DBAPIError as error:
        if error.connection_invalidated:
            raise


def matching(connection: Connection, wanted: str, *, above: int, below: int) -> Select[Any]:
    """The numbers, between these two, of texts that hold `wanted`; to be asked in this transaction."""
    # After five searches on a connection the server would take one plan for any text, which does not use the index.
    connection.execute(text("SET LOCAL plan_cache_mode = force_custom_plan"))
    within = (letter_text.c.seq > above, letter_text.c.seq < below)
    return select(letter_text.c.seq).where(*within, letter_text.c.text.like(f"%{_literally(wanted)}%"))


def _literally(wanted: str) -> str:
    for sign in ("\\", "%", "_"):
        wanted = wanted.replace(sign, f"\\{sign}")
    return wanted
