"""A searchable copy of each letter, and an index on it that follows behind."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from redrive.stores.sql.texts import create_index
from redrive.stores.sql.types import TEXT, Text

revision = "0002"
down_revision = "0001"

_PAGE = 1000
_PAYLOAD = 64 * 1024
_SAID = ("letter_id", "original_message_id", "error_type", "error_message")

_letter = sa.table("letter", sa.column("seq"), *(sa.column(name, Text()) for name in _SAID))
_body = sa.table("letter_body", sa.column("seq"), sa.column("payload", sa.LargeBinary()))


def upgrade() -> None:
    """Create the table and its index, and fill the table from the letters that are there."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    made = op.create_table(
        "letter_text",
        sa.Column("seq", number, primary_key=True, autoincrement=False),
        sa.Column("text", TEXT, nullable=False),
    )
    connection = op.get_bind()
    create_index(connection)
    last = -1
    letters = sa.select(_letter, _body.c.payload).join_from(_letter, _body, _letter.c.seq == _body.c.seq)
    while rows := connection.execute(letters.where(_letter.c.seq > last).order_by(_letter.c.seq).limit(_PAGE)).all():
        connection.execute(sa.insert(made), [{"seq": row.seq, "text": _text(row)} for row in rows])
        last = rows[-1].seq


def _text(row: sa.Row[tuple[Any, ...]]) -> str:
    payload = (row.payload or b"")[:_PAYLOAD].decode("utf-8", "replace")
    text = "\n".join([*(getattr(row, name) for name in _SAID), payload]).lower()
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
