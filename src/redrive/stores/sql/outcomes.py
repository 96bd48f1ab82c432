"""What was reported of redriven messages; also before their letter has come."""

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter, itemgetter

from sqlalchemy import Connection, select

from redrive.core.redrive import RedriveOutcome
from redrive.stores.sql.among import among_given
from redrive.stores.sql.bulk import fetch_rows, run_rows
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
_TOLD = (
    select(*(outcome.c[name] for name in _COLUMNS))
    .where(among_given(outcome.c.letter_id, "letter_ids"))
    .order_by(outcome.c.letter_id, outcome.c.generation, outcome.c.succeeded)
)


def of_letters(connection: Connection, letter_ids: Sequence[str]) -> dict[str, list[RedriveOutcome]]:
    """What was reported so far, by letter, in the order of generations."""
    found: defaultdict[str, list[RedriveOutcome]] = defaultdict(list)
    for some in chunks(letter_ids):
        for letter_id, *rest in fetch_rows(connection, _TOLD, letter_ids=some):
            found[letter_id].append(RedriveOutcome(letter_id, *rest))
    return dict(found)


def keep(connection: Connection, told: Sequence[RedriveOutcome]) -> None:
    """Keep reports, each once."""
    run_rows(connection, _KEEP, _COLUMNS, sorted(map(_values, told), key=itemgetter(0, 1, 2)))
