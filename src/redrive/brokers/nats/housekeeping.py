"""Keeping house: what every group has done is taken from a stream that we began, and stories that are over go too."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from redrive.brokers.nats.groups import Group, Well
from redrive.brokers.nats.hand import seq_in
from redrive.brokers.nats.intake import nak
from redrive.brokers.nats.office import Office
from redrive.brokers.nats.story import State, Story
from redrive.brokers.nats.streams import MARK
from redrive.core.errors import QueueNotFound
from redrive.core.ports import Options

_OFTEN: Final = timedelta(seconds=10)
_LATE: Final = timedelta(seconds=2)
_MANY: Final = 10_000
"""As many acked messages are worth a purge while others are pending."""


class Housekeeping:
    """Looks after one group's wells, for one worker."""

    def __init__(self, office: Office, group: Group, *, options: Options) -> None:
        self._office = office
        self._group = group
        self._options = options
        self._kept_at = office.clock.now()
        self._floors: dict[str, int] = {}

    async def look(self, well: Well) -> dict[str, Any]:
        """What the server says of the group's consumer. One that is gone is made again."""
        office = self._office
        info = await office.groups.info(well.stream, well.consumer)
        if info is None:
            office.streams.forget()
            await office.groups.join(self._group.queue, self._group.name, lease=self._options.lease)
            info = await office.groups.info(well.stream, well.consumer)
            if info is None:
                raise QueueNotFound(f"nats: the stream of {self._group.queue!r} was deleted")
        if office.clock.now() - self._kept_at >= _OFTEN:
            self._kept_at = office.clock.now()
            await self.keep(well, info)
        return info

    async def keep(self, well: Well, info: dict[str, Any]) -> None:
        """Trim, and drop stories of what was acked."""
        floor = int(info["ack_floor"]["stream_seq"])
        key = f"story.{well.key}"
        rows = await self._office.book.under(key)
        marks = await self._office.book.under(f"suspect.{well.key}")
        over = {name: row.revision for name, row in (*rows.items(), *marks.items()) if seq_in(name) <= floor}
        await self._office.book.drop(over)
        if self._trims(well) and (not info["num_ack_pending"] or floor - self._floors.get(well.key, 0) >= _MANY):
            self._floors[well.key] = floor
            await self._trim(well, floor)
        await self._remind([Story.load(row.value) for name, row in rows.items() if seq_in(name) > floor])

    async def _remind(self, stories: Sequence[Story]) -> None:
        """Tell the server anew what it should have delivered by now.

        A purge makes it forget what it was about to deliver again, until the end of a lease; so may a sudden death.
        """
        late = self._office.clock.now() - _LATE
        due = [one for one in stories if one.state is State.RETRY and one.due_at is not None and one.due_at < late]
        if due:
            await self._office.link.say([(one.reply, nak()) for one in due])

    def _trims(self, well: Well) -> bool:
        stream = well.stream
        if self._options.trim is not None:
            return self._options.trim == "acked" and stream.keeps_acked
        return bool(stream.ours) and stream.keeps_acked and not stream.is_dlq

    async def _trim(self, well: Well, floor: int) -> None:
        """Up to where the slowest group of the queue is. The lane is the group's own."""
        consumers = await self._office.groups.of(well.stream)
        of_queue = [one for one in consumers if (one["config"].get("metadata") or {}).get(MARK) == self._group.queue]
        if len(of_queue) != len(consumers):
            return  # others read here too
        lowest = min(int(one["ack_floor"]["stream_seq"]) for one in of_queue)
        for subject, upto in ((self._group.queue, lowest), (self._group.lane, floor)):
            if upto > self._floors.get(subject, 0):
                asked = {"filter": subject, "seq": upto + 1}
                await self._office.link.api(f"STREAM.PURGE.{well.stream.name}", asked)
                self._floors[subject] = upto
