"""The demo while it runs: a producer, and what is seen of the worker and of the letters."""

import asyncio
import json
import time
from collections import Counter, deque
from datetime import UTC, datetime
from math import inf
from typing import Any

from redrive.cli.demo_fates import FATES, GROUP, Fate, in_turn, payload
from redrive.cli.demo_view import Count, News, Picture, Trouble
from redrive.core.errors import LetterNotFound
from redrive.core.life import LetterState
from redrive.core.message import Message
from redrive.core.ports import Broker, Depth, Options
from redrive.core.ports.store import Store

TICK = 0.1
PAGE = 200
SHOWN = 6  # incidents


class Stage:
    """What the demo knows: its own count of what it published, and what it saw of the rest."""

    def __init__(self, broker: Broker, store: Store, *, seconds: float | None, rate: float) -> None:
        self._broker = broker
        self._store = store
        self._seconds = seconds
        self._rate = rate
        self._begun = time.monotonic()
        self._published: Counter[str] = Counter()
        self._news: deque[News] = deque(maxlen=40)
        self._deaths = 0
        self.url = ""
        """Where the console is."""
        self.worker_said: deque[str] = deque(maxlen=5)
        """Its last lines that were no log lines: a traceback, if it could not start."""

    @property
    def elapsed(self) -> float:
        """Seconds since the curtain rose."""
        return time.monotonic() - self._begun

    @property
    def left(self) -> float:
        """Seconds that are left; without an end there is always time."""
        return inf if self._seconds is None else max(0.0, self._seconds - self.elapsed)

    async def set_up(self) -> None:
        """Make every queue and its group, so that there is something to count from the start."""
        for fate in FATES:
            for queue in (fate.queue, fate.receipts):
                subscription = await self._broker.subscribe(queue, group=GROUP, options=Options(owner="demo"))
                await subscription.aclose()

    async def produce(self, stop: asyncio.Event) -> None:
        """Publish at the rate; count what the broker has confirmed. Never ends between the two."""
        fates = in_turn()
        made = 0
        while not stop.is_set():
            due: dict[Fate, int] = Counter(next(fates) for _ in range(int(self._rate * self.elapsed) - made))
            for fate, number in due.items():
                first = self._published[fate.queue] + 1
                bodies = (payload(fate, one) for one in range(first, first + number))
                messages = [Message("", fate.queue, body) for body in bodies]
                self._published[fate.queue] += len(await self._broker.publish(fate.queue, messages))
                made += number
            await asyncio.sleep(TICK)

    def hear(self, line: str) -> None:
        """Take note of a line of the worker's log."""
        try:
            said = json.loads(line)
        except ValueError:
            self.worker_said.append(line)
            return
        self._deaths += said.get("message") == "worker died"
        if news := _news(said):
            self._news.append(news)

    async def look(self, *, settled: bool = False) -> Picture:
        """Where every message is now. Exact once the workers have stopped and everything is `settled`."""
        counts = {}
        due = []
        for fate in FATES:
            depth = await self._broker.depth(fate.queue, group=GROUP)
            counts[fate.queue] = await self._count(fate, depth, settled=settled)
            due += [depth.next_due_at] if depth.next_due_at else []
        page = await self._store.incidents(state=None, limit=SHOWN)
        return Picture(
            elapsed=self.elapsed,
            seconds=self._seconds,
            counts=counts,
            stories={fate.queue: fate.story for fate in FATES},
            incidents=[
                Trouble(one.error_type.rpartition(".")[2], ", ".join(one.queues), one.total, one.open)
                for one in page.rows
            ],
            news=tuple(self._news),
            next_due=(min(due) - datetime.now(UTC)).total_seconds() if due else None,
            deaths=self._deaths,
            purged=await self._purged() if settled else 0,
            url=self.url,
        )

    async def _count(self, fate: Fate, depth: Depth, *, settled: bool) -> Count:
        """A letter that was sent back is where its message is; any other one is in the DLQ or in the store."""
        receipts = await self._broker.depth(fate.receipts, group=GROUP)
        states = (await self._store.stats(fate.queue)).by_state
        kept = states.get(LetterState.OPEN, 0) + states.get(LetterState.PARKED, 0)
        return Count(
            published=self._published[fate.queue],
            done=receipts.waiting,
            waiting=depth.waiting,
            scheduled=depth.scheduled,
            in_flight=depth.in_flight,
            dead=depth.dead + kept - (await self._in_both(fate) if settled else 0),
            discarded=states.get(LetterState.DISCARDED, 0),
        )

    async def _purged(self) -> int:
        """How many letters somebody removed whose messages were in no other place: their audit says what they were."""
        purged, after = 0, None
        while True:
            page = await self._store.records(limit=PAGE, after=after)
            for one in page.rows:
                if one.verb == "letters.purge" and one.letter_id:
                    purged += one.detail["state"][0] != LetterState.RESOLVED
            after = page.after
            if after is None:
                return purged

    async def _in_both(self, fate: Fate) -> int:
        """How many letters are in the store, and in the DLQ still: the collector was stopped between the two."""
        both, start = 0, None
        while True:
            entries = await self._broker.dead_letters(fate.queue).peek(PAGE, start=start)
            for entry in entries[1 if start else 0 :]:
                try:
                    life = (await self._store.get(entry.letter.letter_id)).life
                except LetterNotFound:
                    continue
                both += life.state in (LetterState.OPEN, LetterState.PARKED)
            if len(entries) < PAGE:
                return both
            start = entries[-1].entry_id


def _news(said: dict[str, Any]) -> News | None:
    error = str(said.get("error_type", "")).rpartition(".")[2]
    match said.get("message"):
        case "will retry":
            text = f"{error} at attempt {said['attempt']}, again in {said['delay']:.1f} s"
        case "dead letter":
            text = f"{error}: given up, {said['reason'].replace('_', ' ')}"
        case "suspect runs alone" if said["crashes"]:
            text = f"a message that killed its process runs alone, time {said['crashes'] + 1}"
        case "worker died":
            text = f"a process died: {said['text']}"
        case "consumer paused":
            text = f"paused: {said['why']}"
        case "consumer resumed":
            text = "resumed"
        case _:
            return None
    at = datetime.fromisoformat(said["timestamp"]).astimezone()
    return News(f"{at:%H:%M:%S}", said.get("queue", "worker"), text)
