"""Indexes that know of a letter's state only whether it is settled: sending it back leaves them as they are."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_OWNED = sa.text("user_id IS NOT NULL")
_letter = sa.table("letter", sa.column("state"), sa.column("settled"))


def upgrade() -> None:
    """Add the column, and make the indexes anew."""
    op.add_column("letter", sa.Column("settled", sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute(sa.update(_letter).where(_letter.c.state.in_(("resolved", "discarded"))).values(settled=sa.true()))
    for name in ("queue", "fingerprint", "error_type"):
        op.drop_index(f"letter_{name}", "letter")
        op.create_index(f"letter_{name}", "letter", [name, "settled", "seq"])
    op.drop_index("letter_user", "letter")
    columns = ["user_id", "settled", "seq"]
    op.create_index("letter_user", "letter", columns, sqlite_where=_OWNED, postgresql_where=_OWNED)
