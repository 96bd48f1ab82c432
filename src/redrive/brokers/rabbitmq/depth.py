"""How much of a group's work is where."""

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from redrive.brokers.rabbitmq.entry import Entry, entry_in
from redrive.brokers.rabbitmq.link import behind
from redrive.brokers.rabbitmq.names import Place
from redrive.brokers.rabbitmq.office import Office
from redrive.core.errors import QueueNotFound
from redrive.core.ports import Depth


class _Queue(NamedTuple):
    """How many wait in a queue, and the one that is the next to come out."""

    length: int = 0
    head: Entry | None = None


async def depth_of(office: Office, place: Place, *, dead: int) -> Depth:
    """What waits is asked of the server. What is in hand is known of this process, and of others as they told last."""
    await office.book.open()
    facts = office.book.of(place.queue)
    if facts is None or (place.group and place.group not in facts.groups):
        raise QueueNotFound(f"queue {place.queue!r} has no group {place.group!r}")
    source = office.topology.source(place)
    await office.rest(source)
    holds = [_hold.hold(step) for _hold in {place, Place(place.queue, "")} for step in office.book.holds(_hold)]
    (work, suspects, *waiting), held, paused, away = await asyncio.gather(
        asyncio.gather(*(_look(office, name, place) for name in (source, place.suspects, *holds))),
        office.link.count(place.held),
        reason(office, place),
        office.in_hand_elsewhere(place) if place.group else _nothing(),
    )
    here = office.waiting_here(source)
    published = [each.head.message.published_at for each in (work, suspects) if each.head is not None]
    return Depth(
        waiting=work.length + suspects.length + here,
        in_flight=sum(1 for _ in office.hands.of(place)) + away,
        scheduled=sum(each.length for each in waiting),
        held=held or 0,
        dead=dead,
        oldest_at=_first(published),
        next_due_at=_first(each.head.due_at for each in waiting if each.head is not None),
        paused=paused,
    )


async def reason(office: Office, place: Place) -> str | None:
    """Why a group is paused, if it is."""
    if not place.group or not await office.link.count(place.paused):
        return None
    return office.book.why_paused(place)


async def _look(office: Office, name: str, place: Place) -> _Queue:
    """The first message of a queue goes back as it was: nobody has begun with it.

    With it the server says how many are behind it: in their turn, after all that was given back before.
    """
    try:
        async with office.link.for_a_moment() as channel:
            found = await office.link.get(channel, name)
            if found is None:
                return _Queue()
            await office.link.give_all_back(channel)
    except QueueNotFound:
        return _Queue()
    length = behind(found) + 1
    await office.link.back_in(name, length)
    return _Queue(length, entry_in(found, queue=place.queue, now=office.clock.now()))


async def _nothing() -> int:
    return 0


def _first(instants: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in instants if at is not None), default=None)
