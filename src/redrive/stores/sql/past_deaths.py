"""Deaths that letters no longer show: so that each counts once, whenever it is told of again."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, select

from redrive.stores.sql.chunks import chunks
from redrive.stores.sql.sqlite import insert
from redrive.stores.sql.tables import past_death


def of_letters(connection: Connection, letter_ids: Sequence[str]) -> dict[str, set[int]]:
    """The generations in which letters died, but for the death that each shows."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for some in chunks(letter_ids):
        for row in connection.execute(select(past_death).where(past_death.c.letter_id.in_(some))):
            found[row.letter_id].add(row.generation)
    return dict(found)


def keep(connection: Connection, deaths: Iterable[tuple[str, int]]) -> None:
    """Remember deaths by letter and generation, each once."""
    rows = [{"letter_id": letter_id, "generation": generation} for letter_id, generation in deaths]
    if rows:
        connection.execute(insert(past_death).on_conflict_do_nothing(), rows)


def forget(connection: Connection, letter_ids: Sequence[str]) -> None:
    """Forget those of letters that are purged, at most a thousand: their tombstones know."""
    connection.execute(delete(past_death).where(past_death.c.letter_id.in_(letter_ids)))
