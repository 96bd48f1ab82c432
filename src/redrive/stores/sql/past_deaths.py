"""Deaths that letters no longer show: so that each counts once, whenever it is told of again."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, select

from redrive.stores.sql.among import among
from redrive.stores.sql.bulk import run_rows
from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.tables import past_death
from redrive.stores.sql.upsert import insert

_KEEP = insert(past_death).on_conflict_do_nothing()


def of_letters(connection: Connection, letter_ids: Sequence[str]) -> dict[str, set[int]]:
    """The generations in which letters died, but for the death that each shows."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for some in chunks(letter_ids):
        for row in connection.execute(select(past_death).where(among(past_death.c.letter_id, some))):
            found[row.letter_id].add(row.generation)
    return dict(found)


def keep(connection: Connection, deaths: Iterable[tuple[str, int]]) -> None:
    """Remember deaths by letter and generation, each once."""
    run_rows(connection, _KEEP, ("letter_id", "generation"), sorted(deaths))


def forget(connection: Connection, letter_ids: Sequence[str]) -> None:
    """Forget those of letters that are purged, at most a thousand: their tombstones know."""
    connection.execute(delete(past_death).where(past_death.c.letter_id.in_(letter_ids)))
