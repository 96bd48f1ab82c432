"""Insert, and what to do where the row is there already.

SQLite has its ON CONFLICT from PostgreSQL: the statement that SQLAlchemy has for the one serves the other. Rows of an
upsert come sorted by key: whoever changes several rows locks them in the same order as everybody else.
"""

from sqlalchemy.dialects.postgresql import Insert, insert

__all__ = ["Insert", "insert"]
