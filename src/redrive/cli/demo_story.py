"""The demo's story: what a person does about dead letters, done by the demo with the verbs that a person has."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from redrive.cli.demo_fates import FATES
from redrive.cli.demo_view import Line, Picture
from redrive.core.errors import StateConflict
from redrive.core.ports import Broker
from redrive.core.redrive import ItemStatus
from redrive.core.stored import IncidentRow
from redrive.triage import incidents, redrives
from redrive.triage.desk import Desk
from redrive.triage.redriver import Redriver
from redrive.triage.selection import Wanted, select

ENOUGH = 5  # letters that make an incident worth a look
CANARY = (1, 3)
TICK = 0.2
PATIENCE = 50  # ticks for what is claimed to be sent


class Story:
    """Told once, in a task of its own. `lines` is what has happened so far; `deploy` brings the fixed version."""

    def __init__(self, desk: Desk, broker: Broker, *, deploy: Callable[[], Awaitable[None]]) -> None:
        self._desk = desk
        self._broker = broker
        self._deploy = deploy
        self._ending = asyncio.Event()
        self.lines: list[Line] = []
        self.is_told = False

    async def tell(self, *, after: float) -> None:
        """Find the worst incident, have its bug fixed, redrive it; then try another, where nothing was fixed."""
        with suppress(_EndedEarly):
            await self._pause(after)
            worst = await self._worst()
            self._say(f"the worst incident: {_named(worst)}, {worst.open} letters")
            await self._deploy()
            self._say("its bug is fixed: version 2 is deployed")
            await self._send_back(worst, "sent back, canary first")
            other = await self._worst(but=worst.incident_id)
            await self._send_back(other, f"{_named(other)}, where nothing was fixed")
            self.is_told = True

    async def end(self) -> None:
        """Let nothing be half sent, by the demo or by hand: no more is claimed, and what was claimed is out."""
        self._ending.set()
        under_way = [one.redrive_id for one in await self._desk.store.unfinished()]
        for redrive_id in under_way:
            with suppress(StateConflict):
                await redrives.cancel(self._desk, redrive_id, why="the demo ends")
        for _ in range(PATIENCE):
            if not await self._half_sent(under_way):
                return
            await asyncio.sleep(TICK)

    def beside(self, picture: Picture) -> Picture:
        """The picture, with the story so far."""
        return replace(picture, story=tuple(self.lines), is_told=self.is_told)

    async def _half_sent(self, redrive_ids: Sequence[str]) -> int:
        """How many letters are claimed, and not known to be out."""
        found = [await self._desk.store.progress(one) for one in redrive_ids]
        return sum(one.count(ItemStatus.CLAIMED) for one in found)

    async def _worst(self, *, but: str = "") -> IncidentRow:
        while True:
            page = await incidents.find(self._desk)
            found = [one for one in page.rows if one.open >= ENOUGH and one.incident_id != but]
            if found and await self._is_collected():
                return max(found, key=lambda one: one.open)
            await self._pause(TICK)

    async def _is_collected(self) -> bool:
        """Whether the store has nearly all letters, and with them the right answer to which incident is the worst."""
        left = [await self._broker.dead_letters(fate.queue).length() for fate in FATES]
        return sum(left) * 5 <= (await self._desk.store.stats()).total

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), seconds)
        if self._ending.is_set():
            raise _EndedEarly

    async def _send_back(self, incident: IncidentRow, said: str) -> None:
        await self._pause(0)
        desk, brokers = self._desk, {self._broker.name: self._broker}
        terms = redrives.Terms(canary=CANARY)
        selection = await select(desk, Wanted(query=await incidents.query_of(desk, incident.incident_id)))
        plan = await redrives.plan(selection, terms, brokers=brokers)
        try:
            redrive = await redrives.create(desk, plan)
        except StateConflict:
            self._say(f"{said}: somebody was quicker")
            return
        self.lines.append(Line(f"{said}: …"))
        await Redriver(desk.store, brokers, clock=desk.clock).run(redrive.redrive_id)
        found = await redrives.show(desk, redrive.redrive_id)
        self.lines[-1] = Line(f"{said}: {found.verdict}", done=True)

    def _say(self, text: str) -> None:
        self.lines.append(Line(text, done=True))


class _EndedEarly(Exception):
    """There is no time for the rest of the story."""


def _named(incident: IncidentRow) -> str:
    return f"{incident.error_type.rpartition('.')[2]} on {', '.join(incident.queues)}"
