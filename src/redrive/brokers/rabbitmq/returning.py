"""Sending letters back: once per key, as far as the memory goes."""

import hashlib
from collections.abc import Mapping, Sequence

from redrive.brokers.rabbitmq.entry import sent_back
from redrive.brokers.rabbitmq.link import Posting
from redrive.brokers.rabbitmq.names import Place, check
from redrive.brokers.rabbitmq.office import Office
from redrive.brokers.rabbitmq.parcel import write
from redrive.core.marks import write_marks
from redrive.core.message import Message, without_reserved
from redrive.core.redrive import SendBack


def message_id(item: SendBack) -> str:
    """The id that a letter has on its way back: the same however often it is asked for."""
    return hashlib.sha256(f"{item.queue} {item.once_key}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


async def send_back(office: Office, items: Sequence[SendBack]) -> Sequence[str]:
    """Send letters back; return message ids in order, the same when repeated."""
    for item in items:
        check(queue=item.queue, group=item.group)
    for queue in dict.fromkeys(item.queue for item in items):
        await _send(office, queue, {message_id(item): item for item in items if item.queue == queue})
    return [message_id(item) for item in items]


async def _send(office: Office, queue: str, items: Mapping[str, SendBack]) -> None:
    once = office.once(queue)
    async with once.alone:
        await once.open()
        new = {name: item for name, item in items.items() if not once.has(name)}
        if not new:
            return
        await office.link.publish_all([await _posting(office, item) for item in new.values()])
        await once.remember(new)


async def _posting(office: Office, item: SendBack) -> Posting:
    """To the group's own queue, or into the queue, where no group speaks for it."""
    now = office.clock.now()
    if item.group is None:
        headers = (*without_reserved(item.headers), *write_marks(item))
        parcel = write(Message(message_id(item), item.queue, item.body, headers, item.key, now))
        return await office.topology.to_queue(item.queue, parcel)
    place = Place(item.queue, item.group)
    await office.topology.group(place)
    entry = sent_back(item, message_id=message_id(item), now=now)
    return Posting("", office.topology.source(place), entry.parcel())
