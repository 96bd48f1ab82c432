"""What comes again, or comes without what it needs: decided before it is handed out."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from aiormq.abc import DeliveredMessage

from redrive.brokers.rabbitmq.channels import is_open
from redrive.brokers.rabbitmq.entry import Entry, entry_in, entry_of, new_id
from redrive.brokers.rabbitmq.link import Posting, tag_of
from redrive.brokers.rabbitmq.names import Place
from redrive.brokers.rabbitmq.office import Office
from redrive.brokers.rabbitmq.parcel import STATE, read
from redrive.core.ports import Options


class Judge:
    """Decides for one worker of a group."""

    _clear_at: datetime | None = None

    def __init__(self, office: Office, place: Place, *, source: str, options: Options) -> None:
        self._office = office
        self._place = place
        self._source = source
        self._options = options

    def has_come(self, delivered: DeliveredMessage | None) -> None:
        """Take note of what the queue had to give, if anything.

        What was given back comes first: while something new comes, or nothing, nothing waits that comes again.
        """
        if delivered is None or not delivered.redelivered:
            self._clear_at = self._office.clock.now()

    def is_doubtful(self, delivered: DeliveredMessage) -> bool:
        """Whether it cannot be handed out as it is."""
        if delivered.redelivered or not delivered.header.properties.message_id:
            return True
        table = delivered.header.properties.headers or {}
        return STATE in table and '"until"' in str(table[STATE])

    async def judge(self, batch: Sequence[DeliveredMessage]) -> tuple[list[DeliveredMessage], int]:
        """Those that may be handed out, and how many have been moved to where they belong; the rest is in hand."""
        now = self._office.clock.now()
        innocent: list[DeliveredMessage] = []
        again: list[tuple[DeliveredMessage, Entry]] = []
        moving: list[tuple[DeliveredMessage, Posting]] = []
        for delivered in batch:
            found = read(delivered, queue=self._place.queue, now=now)
            entry = entry_of(found)
            if not found.has_id:
                adopted = Entry(found.message._replace(id=new_id()))
                moving.append((delivered, Posting("", self._source, adopted.parcel())))
            elif entry.until is not None and entry.until > now:
                moving.append((delivered, await self._once_more(entry)))
            elif delivered.redelivered:
                again.append((delivered, entry))
            else:
                innocent.append(delivered)
        if again:
            cleared, suspects = await self._told_apart(again)
            innocent += cleared
            moving += suspects
        await self._move(moving)
        return innocent, len(moving)

    async def _once_more(self, entry: Entry) -> Posting:
        return await self._office.topology.posting(
            self._place, entry.parcel(), due_at=entry.until, now=self._office.clock.now()
        )

    async def _told_apart(
        self, again: Sequence[tuple[DeliveredMessage, Entry]]
    ) -> tuple[list[DeliveredMessage], list[tuple[DeliveredMessage, Posting]]]:
        """Those with which nobody had begun; and the suspects, with the way to their queue."""
        workers = (await self._office.notes(self._place).workers(clear_at=self._clear_at)).values()
        begun = {key for worker in workers for key in worker.taken}
        ours = self._office.hands.broken(self._place, self._options.owner)
        innocent, suspects = [], []
        for delivered, entry in again:
            hold = ours.get(entry.key)
            if hold is not None and not hold.alone and not is_open(hold.tag.channel):
                # Its handler runs here: only the connection was lost, and this one came back to us.
                hold.tag, hold.consumer = tag_of(delivered), delivered.consumer_tag
            elif entry.key in begun:
                suspects.append((delivered, Posting("", self._place.suspects, replace(entry, mark=None).parcel())))
            else:
                innocent.append(delivered)
        return innocent, suspects

    async def _move(self, moving: Sequence[tuple[DeliveredMessage, Posting]]) -> None:
        """Write them to where they belong, then take them from where they were."""
        await self._office.link.publish_all([posting for _, posting in moving])
        await self._office.link.ack([tag_of(delivered) for delivered, _ in moving])


def entry_now(delivered: DeliveredMessage, place: Place, office: Office) -> Entry:
    """The message that was delivered to a group."""
    return entry_in(delivered, queue=place.queue, now=office.clock.now())
