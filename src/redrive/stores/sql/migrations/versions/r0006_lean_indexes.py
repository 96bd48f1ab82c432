"""Indexes that hold no more than what is looked for: each claimed letter changed one of them, and filled the other."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_OPERATION = sa.text("letter_id = ''")


def upgrade() -> None:
    """Make both anew: the items of a letter whatever their generation, and of the audit only what operations are."""
    op.drop_index("redrive_item_letter", "redrive_item")
    op.create_index("redrive_item_letter", "redrive_item", ["letter_id"])
    op.drop_index("audit_operation", "audit")
    op.create_index("audit_operation", "audit", ["operation_id"], sqlite_where=_OPERATION, postgresql_where=_OPERATION)
