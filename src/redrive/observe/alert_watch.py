"""What fires: the incidents that are open, and the queues in which a rule is broken."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from redrive.core.alert import Alert, Rule
from redrive.core.alert_rules import AlertRules
from redrive.core.errors import LetterNotFound
from redrive.core.ports.store import LetterStore
from redrive.core.stored import IncidentRow
from redrive.observe.alert_memo import AlertMemo
from redrive.observe.pages import Pages
from redrive.observe.queue_watch import QueueWatch

MOST: Final = 1000
"""Of more open incidents than that, those with the latest deaths are told of."""
MEASURE_EVERY: Final = timedelta(seconds=30)
"""How often queues are measured."""
_PAGE: Final = 200


class AlertWatch:
    """Says what fires and what has ended. What it has to remember is in the memo that it is given."""

    def __init__(self, store: LetterStore, rules: AlertRules, *, pages: Pages) -> None:
        self._store = store
        self._rules = rules
        self._pages = pages
        self._queues = QueueWatch(store, rules, pages=pages)
        self._broken: dict[str, Alert] = {}
        self._measured_at: datetime | None = None

    async def firing(self, memo: AlertMemo, now: datetime) -> dict[str, Alert]:
        """Every alert that fires, by its key; the memo remembers since when. Raises `StoreError`."""
        if self._measured_at is None or not self._measured_at <= now < self._measured_at + MEASURE_EVERY:
            self._broken = await self._queues.broken(memo, now)
            self._measured_at = now
        found = {alert.key: alert for row in await self._open() if (alert := self._alert(row, now)) is not None}
        found |= self._broken
        memo.began = {alert.spell: memo.began.get(alert.spell, alert.began_at) for alert in found.values()}
        return {key: replace(alert, began_at=memo.began[alert.spell]) for key, alert in found.items()}

    async def ended(self, memo: AlertMemo, firing: Mapping[str, Alert], now: datetime) -> dict[str, Alert]:
        """What anybody was told of and does not fire any more, as it is told now. Raises `StoreError`."""
        told = {key: one.alert for heard in memo.told.values() for key, one in heard.items() if key not in firing}
        return {key: ended for key, alert in sorted(told.items()) if (ended := await self._ended(alert, now))}

    async def _open(self) -> list[IncidentRow]:
        found: list[IncidentRow] = []
        after: str | None = None
        while len(found) < MOST:
            page = await self._store.incidents(state="open", limit=_PAGE, after=after)
            found += page.rows
            after = page.after
            if after is None:
                break
        return found

    def _alert(self, row: IncidentRow, now: datetime) -> Alert | None:
        """The alert of an open incident, unless its rule is off."""
        if row.state != "open" or not (self._rules.relapse if row.relapses else self._rules.new_incident):
            return None
        return Alert(
            rule=Rule.RELAPSE if row.relapses else Rule.NEW_INCIDENT,
            incident_id=row.incident_id,
            error_type=row.error_type,
            queues=tuple(row.queues),
            open=row.open,
            total=row.total,
            relapses=row.relapses,
            began_at=min(row.last_at, now),
            last_at=row.last_at,
            link=self._pages.incident(row.incident_id),
        )

    async def _ended(self, alert: Alert, now: datetime) -> Alert | None:
        """An alert that does not fire, at its end; None if it does: there are more than are told of."""
        if not alert.rule.is_of_incident:
            return replace(alert, ended_at=now)
        try:
            row = await self._store.incident(alert.incident_id)
        except LetterNotFound:
            return replace(alert, open=0, ended_at=now)
        if self._alert(row, now) is not None:
            return None
        return replace(alert, open=row.open, total=row.total, last_at=row.last_at, ended_at=now)
