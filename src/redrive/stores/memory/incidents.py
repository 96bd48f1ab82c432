"""Incidents in memory."""

from dataclasses import replace

from redrive.core.stored import IncidentRow
from redrive.stores.ledger import IncidentDelta


def changed(row: IncidentRow | None, fingerprint: str, delta: IncidentDelta) -> IncidentRow | None:
    """The incident after a change; None if there is none."""
    is_new = row is None
    if row is None:
        if delta.latest is None or delta.first_at is None:
            return None
        row = IncidentRow(
            incident_id=fingerprint,
            fingerprint=fingerprint,
            error_type=delta.latest.error_type,
            error_message=delta.latest.error_message,
            open=0,
            total=0,
            first_at=delta.first_at,
            last_at=delta.latest.failed_at,
            queues=(),
            state="resolved",
        )
    hours = dict(row.hours)
    for hour, number in delta.hours.items():
        hours[hour] = hours.get(hour, 0) + number
    after = replace(
        row,
        open=row.open + delta.open,
        total=row.total + delta.total,
        queues=tuple(sorted({*row.queues, *delta.queues})),
        hours=tuple(sorted(hours.items())),
        first_at=min(row.first_at, delta.first_at or row.first_at),
    )
    if delta.latest is not None and delta.latest.failed_at >= row.last_at:
        latest = delta.latest
        after = replace(
            after, last_at=latest.failed_at, error_type=latest.error_type, error_message=latest.error_message
        )
    if after.state == "resolved" and delta.open > 0:
        return replace(after, state="open", relapses=row.relapses + (not is_new))
    return replace(after, state="resolved") if after.state == "open" and not after.open else after
