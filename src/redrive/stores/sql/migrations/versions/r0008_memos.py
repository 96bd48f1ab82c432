"""How often incidents relapsed, until when they are muted, and memos: what alerting has to remember."""

import sqlalchemy as sa
from alembic import op

from redrive.stores.sql.types import TEXT

revision = "0008"
down_revision = "0007"

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns and the table. An incident that relapsed before is taken for one that did not."""
    op.add_column("incident", sa.Column("relapses", _NUMBER, nullable=False, server_default="0"))
    op.add_column("incident", sa.Column("muted_until", _NUMBER))
    op.create_table(
        "memo",
        sa.Column("name", TEXT, primary_key=True),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("owned_until", _NUMBER, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
