"""Items of redrives in the order of their turns, and counted; letters of a user in one row, settled or not.

On SQLite, tables of short rows that are found by their key alone have no rowid from now on.
"""

import sqlalchemy as sa
from alembic import op

from redrive.stores.sql.types import TEXT

revision = "0010"
down_revision = "0009"

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_DUE = sa.text("status IN ('planned', 'claimed')")
_SENT = sa.text("status = 'sent'")
_OWNED = sa.text("user_id IS NOT NULL")
_SHORT = (
    *("outcome", "past_death", "tombstone", "tally_state", "tally_death"),
    *("incident_hour", "incident_queue"),
)
_ITEM = "redrive_id, letter_id, step, version, status, generation, fingerprint, message_id, sent_at, app_version"
_IN_TURN = "SELECT row_number() OVER (ORDER BY redrive_id, place)"


def upgrade() -> None:
    """Make the tables anew, with what is in them."""
    for name in ("redrive_item_status", "redrive_item_letter", "redrive_item_out"):
        op.drop_index(name, "redrive_item")
    op.rename_table("redrive_item", "former")
    _items()
    op.execute(f"INSERT INTO redrive_item (seq, {_ITEM}) {_IN_TURN}, {_ITEM} FROM former")
    op.execute("INSERT INTO counter (name, last) SELECT 'item', count(*) FROM redrive_item")
    op.drop_table("former")
    _index_items()
    _tally()
    op.drop_index("letter_user", "letter")
    op.create_index("letter_user", "letter", ["user_id", "seq"], sqlite_where=_OWNED, postgresql_where=_OWNED)
    if op.get_bind().dialect.name == "sqlite":
        for name in _SHORT:
            _without_rowid(name)


def _items() -> None:
    op.create_table(
        "redrive_item",
        sa.Column("seq", _NUMBER, nullable=False, autoincrement=False),
        sa.Column("redrive_id", TEXT, nullable=False),
        sa.Column("letter_id", TEXT, nullable=False),
        sa.Column("step", _NUMBER, nullable=False),
        sa.Column("version", _NUMBER, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("generation", _NUMBER),
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("message_id", TEXT, nullable=False),
        sa.Column("sent_at", _NUMBER),
        sa.Column("app_version", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="redrive_item_in_turn"),
    )


def _index_items() -> None:
    op.create_index("redrive_item_letter", "redrive_item", ["letter_id", "redrive_id"], unique=True)
    due = ["redrive_id", "step", "seq"]
    op.create_index("redrive_item_due", "redrive_item", due, sqlite_where=_DUE, postgresql_where=_DUE)
    sent = ["redrive_id", "sent_at"]
    op.create_index("redrive_item_sent", "redrive_item", sent, sqlite_where=_SENT, postgresql_where=_SENT)


def _tally() -> None:
    op.create_table(
        "redrive_tally",
        sa.Column("redrive_id", TEXT, nullable=False),
        sa.Column("step", _NUMBER, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("app_version", TEXT, nullable=False),
        sa.Column("n", _NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("redrive_id", "step", "status", "app_version"),
        sqlite_with_rowid=False,
    )
    counted = "SELECT redrive_id, step, status, app_version, count(*) FROM redrive_item GROUP BY 1, 2, 3, 4"
    op.execute(f"INSERT INTO redrive_tally (redrive_id, step, status, app_version, n) {counted}")


def _without_rowid(name: str) -> None:
    made = op.get_bind().execute(sa.text("SELECT sql FROM sqlite_master WHERE name = :name"), {"name": name}).scalar()
    op.rename_table(name, "former")
    op.execute(f"{made} WITHOUT ROWID")
    op.execute(f"INSERT INTO {name} SELECT * FROM former")  # noqa: S608 - a constant
    op.drop_table("former")
