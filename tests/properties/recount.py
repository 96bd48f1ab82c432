"""What a store counts, beside a recount from scratch."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from redrive.core.letter import DeadLetter
from redrive.core.ports.store import Store
from redrive.core.query import Query
from redrive.core.stored import Dimension, IncidentRow, LetterRow

DIMENSIONS: tuple[Dimension, ...] = ("queue", "reason", "error_type", "error_code")


async def rows_of(store: Store) -> list[LetterRow]:
    rows: list[LetterRow] = []
    after: str | None = None
    while True:
        page = await store.find(Query(), limit=1000, after=after)
        rows.extend(page.rows)
        after = page.after
        if after is None:
            return rows


async def incidents_of(store: Store) -> list[IncidentRow]:
    return [*(await store.incidents(state=None, limit=1000)).rows]


async def check_counts(store: Store) -> None:
    """Tallies and incidents are what a recount from scratch gives."""
    rows, stats = await rows_of(store), await store.stats()
    assert stats.total == len(rows)
    assert stats.by_state == Counter(row.life.state.value for row in rows)
    assert stats.by_error_type == Counter(row.error_type for row in rows)
    assert stats.by_reason == Counter(row.reason for row in rows)
    assert stats.by_queue == Counter(row.queue for row in rows)
    total = Counter(row.fingerprint for row in rows)
    unsettled = Counter(row.fingerprint for row in rows if not row.life.state.settled)
    for incident in await incidents_of(store):
        known = total.pop(incident.fingerprint, 0), unsettled[incident.fingerprint]
        assert (incident.total, incident.open) == known, incident
    assert not total, "letters without an incident"


async def check_deaths(store: Store, deaths: Iterable[DeadLetter]) -> None:
    """Every one of these deaths, and nothing else, is counted in its hour by every dimension, and in its incident."""
    counted: dict[Dimension, defaultdict[datetime, Counter[str]]] = {by: defaultdict(Counter) for by in DIMENSIONS}
    alike: defaultdict[str, list[DeadLetter]] = defaultdict(list)
    for death in deaths:
        for by, hours in counted.items():
            hours[_hour_of(death)][str(getattr(death, by) or "")] += 1
        alike[death.fingerprint].append(death)
    for by, hours in counted.items():
        assert await store.trends(since=datetime(1970, 1, 1, tzinfo=UTC), by=by) == sorted(hours.items()), by
    assert {row.fingerprint for row in await incidents_of(store)} == {*alike}
    for fingerprint, those in alike.items():
        row, times = await store.incident(fingerprint), [death.failed_at for death in those]
        assert dict(row.hours) == Counter(map(_hour_of, those)), fingerprint
        assert (row.first_at, row.last_at) == (min(times), max(times)), fingerprint
        assert {*row.queues} == {death.queue for death in those}, fingerprint


def _hour_of(death: DeadLetter) -> datetime:
    return death.failed_at.replace(minute=0, second=0, microsecond=0)
