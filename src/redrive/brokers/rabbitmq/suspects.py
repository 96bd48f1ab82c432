"""Suspects: in a queue of their own, taken one at a time, each marked in the notes before it runs.

The mark says who runs it. A message that comes back while it was marked is one crash more if its worker has died, and
none if only its connection did.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from aiormq.abc import AbstractChannel, DeliveredMessage

from redrive.brokers.process import identity, is_dead
from redrive.brokers.rabbitmq.entry import Entry, Mark
from redrive.brokers.rabbitmq.hands import Hold
from redrive.brokers.rabbitmq.judging import entry_now
from redrive.brokers.rabbitmq.link import Posting, tag_of
from redrive.brokers.rabbitmq.names import Place
from redrive.brokers.rabbitmq.notes import Worker
from redrive.brokers.rabbitmq.office import Office
from redrive.core.ports import Options

_DIED: Final = "its worker died while it ran alone"


class Suspects:
    """The suspects of a group, for one worker."""

    def __init__(self, office: Office, place: Place, *, options: Options) -> None:
        self._office = office
        self._place = place
        self._options = options
        self._clear_at: datetime | None = None

    async def waiting(self) -> int:
        """How many wait."""
        return await self._office.link.count(self._place.suspects) or 0

    async def take(self, channel: AbstractChannel) -> Hold | None:
        """Mark one, if one waits; return it."""
        link = self._office.link
        while (found := await link.get(channel, self._place.suspects)) is not None:
            entry = entry_now(found, self._place, self._office)
            mark = entry.mark
            if mark is None and found.redelivered:
                workers = await self._office.notes(self._place).workers(clear_at=self._clear_at)
                worker = self._runner_of(entry, workers)
                if worker is not None and self._may_be_alive(worker):
                    await link.give_back([tag_of(found)])
                    return None
                mark = self._mark_of(entry, worker)
            if mark is not None:
                await self._count(found, entry, mark)
                continue
            await self._office.notes(self._place).write("alone", self._options, keys=[entry.key])
            return self._hold(found, entry)
        self._clear_at = self._office.clock.now()
        return None

    def marked(self, hold: Hold, now: datetime) -> Entry:
        """A message whose worker is not heard of: with its mark, if it ran alone."""
        return replace(hold.entry, mark=Mark(hold.owner, hold.since, now)) if hold.alone else hold.entry

    async def _count(self, found: DeliveredMessage, entry: Entry, mark: Mark) -> None:
        """One crash more: written before the message is handed out again."""
        obituary = self._options.obituary
        why = obituary.text if obituary is not None and obituary.owner == mark.owner else _DIED
        crashed = entry.crashed(mark, why=why)
        await self._office.link.publish_all([Posting("", self._place.suspects, crashed.parcel())])
        await self._office.link.ack([tag_of(found)])

    def _hold(self, found: DeliveredMessage, entry: Entry) -> Hold:
        now = self._office.clock.now()
        hold = Hold(
            entry,
            self._place,
            self._place.suspects,
            tag_of(found),
            self._options.owner,
            now,
            now + self._options.lease,
            alone=True,
        )
        self._office.hands.add([hold])
        return hold

    @staticmethod
    def _runner_of(entry: Entry, workers: Mapping[str, Worker]) -> Worker | None:
        return next((worker for worker in workers.values() if entry.key in worker.alone), None)

    def _mark_of(self, entry: Entry, worker: Worker | None) -> Mark | None:
        """The mark of a worker that has died; none of one that lives, and has lost no more than its connection."""
        if worker is None or not self._has_died(worker):
            return None
        return Mark(worker.owner, worker.alone[entry.key], worker.seen_at)

    def _has_died(self, worker: Worker) -> bool:
        obituary = self._options.obituary
        if (obituary is not None and obituary.owner == worker.owner) or is_dead(worker.process):
            return True
        return not _is_near(worker.process) and self._office.clock.now() - worker.seen_at > self._options.lease

    def _may_be_alive(self, worker: Worker) -> bool:
        """Whether nobody can know yet: it was heard of lately, from another machine."""
        return not self._has_died(worker) and not _is_near(worker.process)


def _is_near(process: str) -> bool:
    """Whether a process can be seen from here, so that it is known to live if it is not known to be dead."""
    here = identity()
    return bool(process and here) and process.split(" ")[:2] == here.split(" ")[:2]
