"""The tokens by which callers are known."""

import sqlalchemy as sa
from alembic import op

from redrive.stores.sql.types import TEXT

revision = "0005"
down_revision = "0004"

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "token",
        sa.Column("token_id", TEXT, primary_key=True),
        sa.Column("sha256", TEXT, nullable=False, unique=True),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("role", TEXT, nullable=False),
        sa.Column("created_at", _NUMBER, nullable=False),
        sa.Column("created_by", TEXT, nullable=False),
        sa.Column("expires_at", _NUMBER),
        sa.Column("revoked_at", _NUMBER),
    )
