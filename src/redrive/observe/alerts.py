"""Alerts: which incidents are open, told to notifiers until they are not.

The store is the truth, and is looked at again and again: whoever opens an incident or resolves its last letter, in
whichever process, is found out. What is told survives being told twice, so any number of services may do the same.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote

from redrive.core.alert import Alert
from redrive.core.errors import LetterNotFound
from redrive.core.event import AlertsTold, Event, LettersCollected, NotifierFailed
from redrive.core.ports import Clock, EventSink, Notifier
from redrive.core.ports.store import IncidentRow, LetterStore

EVERY: Final = timedelta(seconds=10)
GATHER: Final = timedelta(seconds=1)
"""How long news is gathered before it is told: what dies together is told together."""
MOST: Final = 1000
"""Of more open incidents than that, those with the latest deaths are told of."""
_PAGE: Final = 200
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=10), timedelta(minutes=1)


@dataclass(slots=True)
class _Listener:
    """A notifier, what it was told of each incident and when, and how long it is left alone after a failure."""

    notifier: Notifier
    told: dict[str, tuple[Alert, datetime]] = field(default_factory=dict)
    wait: timedelta = _FIRST_WAIT
    not_before: datetime | None = None

    def is_left_alone(self, now: datetime) -> bool:
        return self.not_before is not None and now < self.not_before

    def leave_alone(self, now: datetime) -> None:
        self.not_before, self.wait = now + self.wait, min(2 * self.wait, _LONGEST_WAIT)


class Alerts:
    """Looks every ten seconds, and soon after letters were collected; tells each notifier what is news to it.

    An alert begins when an incident opens, for the first time or again, and ends when its last open letter is resolved
    or discarded, or when somebody mutes or resolves it. A notifier that is away costs the others nothing. `page` gives
    the link to an incident's page. Belongs to one event loop.
    """

    def __init__(
        self,
        store: LetterStore,
        notifiers: Iterable[Notifier],
        *,
        clock: Clock,
        sink: EventSink,
        page: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._store = store
        self._listeners = [_Listener(notifier) for notifier in notifiers]
        self._clock = clock
        self._sink = sink
        self._page = page
        self._began: dict[str, datetime] = {}
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Look now and again, until cancelled."""
        while True:
            await self.look()
            await self._until_news()

    async def look(self) -> None:
        """Look once, and tell everybody what is news to them. Never raises."""
        now = self._clock.now()
        try:
            rows = await self._open()
            gone = await self._gone(rows)
        except Exception as error:  # noqa: BLE001 - what was told goes on for a while; the next look comes
            for listener in self._listeners:
                self._failed(listener, 0, error, now)
            return
        self._began = {name: self._began.get(name, min(row.last_at, now)) for name, row in rows.items()}
        firing = {name: self._alert(row, self._began[name]) for name, row in rows.items()}
        await asyncio.gather(*(self._tell(listener, firing, gone, now) for listener in self._listeners))

    def hear(self, event: Event) -> None:
        """The subscriber that hurries the next look; call it in the loop's thread."""
        if isinstance(event, LettersCollected) and (event.incidents or event.resolved):
            self._news.set()

    async def aclose(self) -> None:
        """Close the notifiers. What fires goes on by itself for a while: another service may speak for it."""
        await asyncio.gather(*(listener.notifier.aclose() for listener in self._listeners))

    async def _until_news(self) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(EVERY))
        waiting = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait((sleeping, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waiting.cancel()
        if self._news.is_set():
            await self._clock.sleep(GATHER)
            self._news.clear()

    async def _open(self) -> dict[str, IncidentRow]:
        found: dict[str, IncidentRow] = {}
        after: str | None = None
        while len(found) < MOST:
            page = await self._store.incidents(state="open", limit=_PAGE, after=after)
            found.update((row.incident_id, row) for row in page.rows)
            after = page.after
            if after is None:
                break
        return found

    async def _gone(self, rows: Mapping[str, IncidentRow]) -> dict[str, IncidentRow | None]:
        """What anybody was told of and is not open any more; None for what is not there at all."""
        told = {name for listener in self._listeners for name in listener.told}
        gone: dict[str, IncidentRow | None] = {}
        for name in sorted(told - rows.keys()):
            try:
                row = await self._store.incident(name)
            except LetterNotFound:
                gone[name] = None
            else:
                if row.state != "open":
                    gone[name] = row
        return gone

    def _alert(self, row: IncidentRow, began_at: datetime) -> Alert:
        return Alert(
            incident_id=row.incident_id,
            error_type=row.error_type,
            queues=tuple(row.queues),
            open=row.open,
            total=row.total,
            began_at=began_at,
            last_at=row.last_at,
            link=self._page(row.incident_id),
        )

    async def _tell(
        self,
        listener: _Listener,
        firing: Mapping[str, Alert],
        gone: Mapping[str, IncidentRow | None],
        now: datetime,
    ) -> None:
        if listener.is_left_alone(now):
            return
        begun = [alert for alert in firing.values() if _is_news(listener, alert, now)]
        ended = [
            *(_ended(listener.told[name][0], row, now) for name, row in gone.items() if name in listener.told),
            *_renamed(listener, begun, now),
        ]
        if not begun and not ended:
            return
        try:
            await listener.notifier.tell([*ended, *begun])
        except Exception as error:  # noqa: BLE001 - told again later
            self._failed(listener, len(begun) + len(ended), error, now)
            return
        listener.not_before, listener.wait = None, _FIRST_WAIT
        for incident_id in gone:
            listener.told.pop(incident_id, None)
        listener.told.update((alert.incident_id, (alert, now)) for alert in begun)
        name = listener.notifier.name
        self._sink.emit(AlertsTold(at=now, queue="", notifier=name, firing=len(begun), resolved=len(ended)))

    def _failed(self, listener: _Listener, alerts: int, error: Exception, now: datetime) -> None:
        if listener.is_left_alone(now):
            return
        listener.leave_alone(now)
        why = f"{type(error).__name__}: {error}"
        name = listener.notifier.name
        self._sink.emit(NotifierFailed(at=now, queue="", notifier=name, alerts=alerts, why=why))


def _is_news(listener: _Listener, alert: Alert, now: datetime) -> bool:
    known = listener.told.get(alert.incident_id)
    if known is None or known[0].queue != alert.queue:
        return True
    repeat_every = listener.notifier.repeat_every
    return repeat_every is not None and now - known[1] >= repeat_every


def _renamed(listener: _Listener, begun: Sequence[Alert], now: datetime) -> list[Alert]:
    """What was told under the name of one queue, and goes on under another."""
    known = [(listener.told[alert.incident_id][0], alert) for alert in begun if alert.incident_id in listener.told]
    return [replace(old, ended_at=now) for old, alert in known if old.queue != alert.queue]


def _ended(alert: Alert, row: IncidentRow | None, now: datetime) -> Alert:
    if row is None:
        return replace(alert, open=0, ended_at=now)
    return replace(alert, open=row.open, total=row.total, last_at=row.last_at, ended_at=now)


def page_under(public_url: str | None) -> Callable[[str], str]:
    """The page of an incident in the console that people find at this URL; without one there is no link.

    >>> page_under("https://redrive.example.org/")("a1/b2")
    'https://redrive.example.org/incidents/a1%2Fb2'
    """
    base = (public_url or "").rstrip("/")
    return lambda incident_id: base and f"{base}/incidents/{quote(incident_id, safe='', errors='replace')}"
