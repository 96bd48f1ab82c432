"""Alerts: what fires, told to notifiers until it does not.

The store is the truth, and is looked at again and again: whoever opens an incident or resolves its last letter, in
whichever process, is found out. Of several services one tells; what it has told stands in the store, so that another
one, or the same one later, goes on where it ended.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random
from typing import Final
from uuid import uuid4

from redrive.core.alert_rules import AlertRules
from redrive.core.audit import Act
from redrive.core.errors import StoreError
from redrive.core.event import Event, LettersCollected
from redrive.core.ports import Clock, EventSink, Notifier
from redrive.core.ports.store import Store
from redrive.core.stored import IncidentChange
from redrive.observe.alert_memo import AlertMemo
from redrive.observe.alert_watch import AlertWatch
from redrive.observe.listener import Listener
from redrive.observe.pages import Pages

EVERY: Final = timedelta(seconds=10)
IDLE: Final = timedelta(minutes=1)
"""Where nobody is told, only mutes end."""
GATHER: Final = timedelta(seconds=1)
"""How long news is gathered before it is told: what dies together is told together."""
LEASE: Final = timedelta(minutes=1)
"""How long after the last look of a service that died another one takes over."""
MEMO: Final = "alerts"
_LAST: Final = 5.0  # seconds for a look that is under way at the end
_PAGE: Final = 200
_RULES: Final = AlertRules()
_NO_PAGES: Final = Pages()


class Alerts:
    """Looks every ten seconds, and soon after letters were collected; tells each notifier what is news to it.

    An alert begins when an incident opens, for the first time or again, or a rule about a queue is broken. It ends when
    its last open letter is resolved or discarded, when somebody mutes or resolves it, or when the rule holds again. A
    mute ends here too, when its time is up. A notifier that is away costs the others nothing. Belongs to one event
    loop; any number may look at one store.
    """

    def __init__(
        self,
        store: Store,
        notifiers: Iterable[Notifier],
        *,
        clock: Clock,
        sink: EventSink,
        rules: AlertRules = _RULES,
        pages: Pages = _NO_PAGES,
    ) -> None:
        self._store = store
        random = Random()  # noqa: S311 - jitter, not secrets
        self._listeners = [Listener(notifier, sink=sink, random=random) for notifier in notifiers]
        self._watch = AlertWatch(store, rules, pages=pages)
        self._clock = clock
        self._owner = uuid4().hex
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Look now and again, until cancelled: a look that is under way is finished, and another service may go on."""
        try:
            while True:
                looking = asyncio.ensure_future(self.look())
                try:
                    await asyncio.shield(looking)
                finally:
                    await asyncio.wait([looking], timeout=_LAST)
                    looking.cancel()
                await self._until_news()
        finally:
            await self._give_up()

    async def look(self) -> None:
        """Look once, and tell everybody what is news to them, unless another service does. Never raises."""
        now = self._clock.now()
        try:
            body = await self._store.take_memo(MEMO, owner=self._owner, now=now, until=now + LEASE)
            if body is None:
                return
            await self._end_mutes(now)
            memo = AlertMemo.read(body)
            memo.told = {one.notifier.place: memo.told.get(one.notifier.place, {}) for one in self._listeners}
            if self._listeners:
                await self._tell(memo, now)
            if (written := memo.written()) != body:
                await self._store.write_memo(MEMO, written, owner=self._owner)
        except Exception as error:  # noqa: BLE001 - what was told goes on for a while; the next look comes
            for listener in self._listeners:
                listener.failed(0, error, now)

    def hear(self, event: Event) -> None:
        """The subscriber that hurries the next look; call it in the loop's thread."""
        if isinstance(event, LettersCollected) and (event.incidents or event.resolved):
            self._news.set()

    async def _tell(self, memo: AlertMemo, now: datetime) -> None:
        firing = await self._watch.firing(memo, now)
        ended = await self._watch.ended(memo, firing, now)
        heard = [(one, memo.told[one.notifier.place]) for one in self._listeners]
        await asyncio.gather(*(one.tell(told, firing, ended, now) for one, told in heard))

    async def _end_mutes(self, now: datetime) -> None:
        """Open what was muted until now; what has no open letter is resolved."""
        after: str | None = None
        while True:
            page = await self._store.incidents(state="muted", limit=_PAGE, after=after)
            for row in page.rows:
                if row.muted_until is not None and row.muted_until <= now:
                    act = Act(who=MEMO, verb="incidents.unmute", at=now, selection=f"incident={row.incident_id}")
                    change = IncidentChange(state="open" if row.open else "resolved")
                    await self._store.change_incident(row.incident_id, change, act=act)
            after = page.after
            if after is None:
                return

    async def _until_news(self) -> None:
        now = self._clock.now()
        again = [one.not_before - now for one in self._listeners if one.not_before is not None]
        pause = max(min((EVERY if self._listeners else IDLE, *again)), GATHER)
        sleeping = asyncio.ensure_future(self._clock.sleep(pause))
        waiting = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait((sleeping, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waiting.cancel()
        if self._news.is_set():
            await self._clock.sleep(GATHER)
            self._news.clear()

    async def _give_up(self) -> None:
        """Let another service tell, at once."""
        now = self._clock.now()
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LAST):
                await self._store.take_memo(MEMO, owner=self._owner, now=now, until=now)
