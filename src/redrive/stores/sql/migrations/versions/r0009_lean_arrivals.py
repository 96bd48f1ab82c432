"""Less to do when a letter comes: its text is indexed later on PostgreSQL too, and a first arrival is no entry of news.

On PostgreSQL the texts that are indexed have a table of their own from now on: the one that was there, with its index.
"""

import sqlalchemy as sa
from alembic import op

from redrive.stores.sql.types import TEXT

revision = "0009"
down_revision = "0008"

_REOPENED = sa.text("news <> seq")


def upgrade() -> None:
    """Make the index of news anew, and a room where texts wait to be indexed."""
    op.drop_index("letter_news", "letter")
    op.create_index("letter_news", "letter", ["news"], sqlite_where=_REOPENED, postgresql_where=_REOPENED)
    if op.get_bind().dialect.name != "postgresql":
        return  # an index of SQLite's own is there
    op.rename_table("letter_text", "letter_index")
    op.execute("ALTER INDEX letter_text_pkey RENAME TO letter_index_pkey")
    op.create_table(
        "letter_text",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("text", TEXT, nullable=False),
    )
