"""The deaths that a letter no longer shows, so that each is counted once in whatever order they are told."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from redrive.stores.sql.types import TEXT, Number

revision = "0003"
down_revision = "0002"

_PAGE = 1000

_letter = sa.table("letter", sa.column("seq"), sa.column("letter_id"), sa.column("died_in"))
_body = sa.table("letter_body", sa.column("seq"), sa.column("attempts", sa.LargeBinary()))


def upgrade() -> None:
    """Create the table, and fill it with what the attempts of letters tell of earlier generations."""
    made = op.create_table(
        "past_death",
        sa.Column("letter_id", TEXT, nullable=False),
        sa.Column("generation", Number, nullable=False),
        sa.PrimaryKeyConstraint("letter_id", "generation"),
    )
    connection = op.get_bind()
    last = -1
    relapsed = (
        sa.select(_letter, _body.c.attempts)
        .join_from(_letter, _body, _letter.c.seq == _body.c.seq)
        .where(_letter.c.died_in > 0)
        .order_by(_letter.c.seq)
        .limit(_PAGE)
    )
    while rows := connection.execute(relapsed.where(_letter.c.seq > last)).all():
        deaths = [{"letter_id": row.letter_id, "generation": one} for row in rows for one in _earlier(row)]
        if deaths:
            connection.execute(sa.insert(made), deaths)
        last = rows[-1].seq


def _earlier(row: sa.Row[tuple[Any, ...]]) -> list[int]:
    found = {int(attempt.get("generation", 0)) for attempt in json.loads(row.attempts or b"[]")}
    return sorted(generation for generation in found if generation < row.died_in)
