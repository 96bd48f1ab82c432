"""Deaths by every dimension, the number of a letter's last news, the entry of its DLQ; indexes for several states.

Deaths by reason are moved as they were counted. By error type and code they are counted anew, from the letters: what
letters no longer show, of earlier generations and of those that were purged, counts as `unknown` and without a code. So
every dimension counts every death that was counted before, in its hour and queue. What came last counts as the latest
news; reopenings of the past are forgotten.
"""

from collections import Counter
from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op

from redrive.stores.sql.types import TEXT, Number

revision = "0004"
down_revision = "0003"

_PAGE = 10_000
_HOUR = 3_600_000_000  # microseconds
_OWNED = sa.text("user_id IS NOT NULL")

# Texts and instants are read and written as they are kept.
_letter = sa.table("letter", *map(sa.column, ("seq", "queue", "error_type", "error_code", "failed_at", "news")))
_arrivals = sa.table("arrivals", *map(sa.column, ("hour", "queue", "reason", "n")))

Place = tuple[int, str]
"""An hour and a queue."""


def upgrade() -> None:
    """Add the columns, make the indexes anew, and count deaths by every dimension."""
    op.add_column("letter", sa.Column("dlq_entry_id", TEXT, nullable=False, server_default=""))
    op.add_column("letter", sa.Column("news", Number, nullable=False, server_default="0"))
    op.execute(sa.update(_letter).values(news=_letter.c.seq))
    op.create_index("letter_dlq_entry", "letter", ["dlq_entry_id", "seq"])
    op.create_index("letter_news", "letter", ["news"])
    op.drop_index("letter_user", "letter")
    op.create_index("letter_user", "letter", ["user_id", "state", "seq"], sqlite_where=_OWNED, postgresql_where=_OWNED)
    op.drop_index("letter_failed_at", "letter")
    op.create_index("letter_failed_at", "letter", ["queue", "state", "failed_at"])
    _count_deaths()
    op.drop_table("arrivals")


def _count_deaths() -> None:
    tally = op.create_table(
        "tally_death",
        sa.Column("dimension", TEXT, nullable=False),
        sa.Column("hour", Number, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("queue", TEXT, nullable=False),
        sa.Column("n", Number, nullable=False),
        sa.PrimaryKeyConstraint("dimension", "hour", "name", "queue"),
    )
    connection = op.get_bind()
    counted: Counter[Place] = Counter()
    rows = []
    for hour, queue, reason, number in connection.execute(sa.select(_arrivals)):
        counted[hour, queue] += number
        rows.append(_row("reason", (hour, queue), reason, number))
    types, codes = _shown(connection)
    rows += [_row("error_type", place, name, number) for (place, name), number in _filled(types, counted, "unknown")]
    rows += [_row("error_code", place, name, number) for (place, name), number in _filled(codes, counted, "")]
    for start in range(0, len(rows), _PAGE):
        connection.execute(sa.insert(tally), rows[start : start + _PAGE])


def _shown(connection: sa.Connection) -> tuple[Counter[tuple[Place, str]], Counter[tuple[Place, str]]]:
    """The deaths that letters show, by error type and by error code."""
    types: Counter[tuple[Place, str]] = Counter()
    codes: Counter[tuple[Place, str]] = Counter()
    last = -1
    columns = (_letter.c.seq, _letter.c.queue, _letter.c.error_type, _letter.c.error_code, _letter.c.failed_at)
    letters = sa.select(*columns).order_by(_letter.c.seq).limit(_PAGE)
    while rows := connection.execute(letters.where(_letter.c.seq > last)).all():
        for row in rows:
            place = (row.failed_at // _HOUR * _HOUR, row.queue)
            types[place, row.error_type] += 1
            codes[place, row.error_code or ""] += 1
        last = rows[-1].seq
    return types, codes


def _filled(
    shown: Counter[tuple[Place, str]], counted: Mapping[Place, int], unknown: str
) -> list[tuple[tuple[Place, str], int]]:
    """What letters show, and as `unknown` what was counted beside."""
    left = Counter(counted)
    for (place, _), number in shown.items():
        left[place] -= number
    rest = {(place, unknown): number for place, number in left.items() if number > 0}
    return [*(shown + Counter(rest)).items()]


def _row(dimension: str, place: Place, name: str, number: int) -> dict[str, str | int]:
    hour, queue = place
    return {"dimension": dimension, "hour": hour, "name": name, "queue": queue, "n": number}
