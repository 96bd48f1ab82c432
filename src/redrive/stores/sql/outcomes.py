"""What was reported of redriven messages; also before their letter has come."""

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter, itemgetter

from sqlalchemy import Connection, Row, select

from redrive.core.redrive import RedriveOutcome
from redrive.stores.sql.among import among
from redrive.stores.sql.bulk import run_rows
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.tables import outcome
from redrive.stores.sql.upsert import insert

_FIELDS = (
    *("letter_id", "generation", "succeeded", "reported_at", "queue", "group"),
    *("message_id", "attempts", "app_version", "node"),
)
_values = attrgetter(*_FIELDS)
_COLUMNS = tuple("grp" if name == "group" else name for name in _FIELDS)
_KEEP = insert(outcome).on_conflict_do_nothing()


def of_letters(connection: Connection, letter_ids: Sequence[str]) -> dict[str, list[RedriveOutcome]]:
    """What was reported so far, by letter, in the order of generations."""
    found: defaultdict[str, list[RedriveOutcome]] = defaultdict(list)
    for some in chunks(letter_ids):
        order = (outcome.c.letter_id, outcome.c.generation, outcome.c.succeeded)
        for row in connection.execute(select(outcome).where(among(outcome.c.letter_id, some)).order_by(*order)):
            found[row.letter_id].append(_to_outcome(row))
    return dict(found)


def keep(connection: Connection, told: Sequence[RedriveOutcome]) -> None:
    """Keep reports, each once."""
    run_rows(connection, _KEEP, _COLUMNS, sorted(map(_values, told), key=itemgetter(0, 1, 2)))


def _to_outcome(row: Row[tuple[object, ...]]) -> RedriveOutcome:
    return RedriveOutcome(
        letter_id=row.letter_id,
        generation=row.generation,
        succeeded=row.succeeded,
        reported_at=row.reported_at,
        queue=row.queue,
        group=row.grp,
        message_id=row.message_id,
        attempts=row.attempts,
        app_version=row.app_version,
        node=row.node,
    )
