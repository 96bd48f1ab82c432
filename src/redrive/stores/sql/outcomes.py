"""What was reported of redriven messages; also before their letter has come."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import Connection, Row, select

from redrive.core.redrive import RedriveOutcome
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.sqlite import insert
from redrive.stores.sql.tables import outcome


def of_letters(connection: Connection, letter_ids: Sequence[str]) -> dict[str, list[RedriveOutcome]]:
    """What was reported so far, by letter, in the order of generations."""
    found: defaultdict[str, list[RedriveOutcome]] = defaultdict(list)
    for some in chunks(letter_ids):
        order = (outcome.c.letter_id, outcome.c.generation, outcome.c.succeeded)
        for row in connection.execute(select(outcome).where(outcome.c.letter_id.in_(some)).order_by(*order)):
            found[row.letter_id].append(_to_outcome(row))
    return dict(found)


def keep(connection: Connection, told: Sequence[RedriveOutcome]) -> None:
    """Keep reports, each once."""
    if told:
        connection.execute(insert(outcome).on_conflict_do_nothing(), [_values(one) for one in told])


def _values(told: RedriveOutcome) -> dict[str, object]:
    return {
        "letter_id": told.letter_id,
        "generation": told.generation,
        "succeeded": told.succeeded,
        "reported_at": told.reported_at,
        "queue": told.queue,
        "grp": told.group,
        "message_id": told.message_id,
        "attempts": told.attempts,
        "app_version": told.app_version,
        "node": told.node,
    }


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
