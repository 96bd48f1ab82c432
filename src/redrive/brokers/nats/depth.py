"""How much of a group's work is where."""

from collections import Counter
from datetime import datetime

from redrive.brokers.nats.groups import Group, Well
from redrive.brokers.nats.hand import seq_in
from redrive.brokers.nats.heading import DUE, instant_of
from redrive.brokers.nats.names import later_of
from redrive.brokers.nats.office import Office
from redrive.brokers.nats.reading import after, get
from redrive.brokers.nats.story import State, Story
from redrive.brokers.nats.streams import Stream
from redrive.core.ports import Depth

_PAGE = 500


async def depth_of(office: Office, group: Group, *, dead: int) -> Depth:
    """Of a group. What the server has pending and no story tells otherwise of is in somebody's hands."""
    counts: Counter[str] = Counter()
    oldest: list[datetime] = []
    due: list[datetime] = []
    for well in group.wells:
        await _count(office, group, well, counts, oldest, due)
    later = await _later(office, group.wells[0].stream, group.queue)
    return Depth(
        waiting=counts["waiting"],
        in_flight=max(counts["pending"], 0),
        scheduled=counts["scheduled"] + len(later),
        held=counts["held"],
        dead=dead,
        oldest_at=min(oldest, default=None),
        next_due_at=min([*due, *later], default=None),
        paused=await office.pauses.why(group, fresh=True),
    )


async def depth_of_nobody(office: Office, stream: Stream, queue: str, *, dead: int) -> Depth:
    """Of a queue to which nobody has subscribed."""
    told = await office.link.api(f"STREAM.INFO.{stream.name}", {"subjects_filter": queue})
    waiting = (told["state"].get("subjects") or {}).get(queue, 0)
    first = await after(office.link, stream, queue, seq=1, most=1)
    later = await _later(office, stream, queue)
    oldest_at = first[0].at if first else None
    due_at = min(later, default=None)
    return Depth(waiting=waiting, scheduled=len(later), dead=dead, oldest_at=oldest_at, next_due_at=due_at)


async def _count(
    office: Office, group: Group, well: Well, counts: Counter[str], oldest: list[datetime], due: list[datetime]
) -> None:
    info = await office.groups.info(well.stream, well.consumer)
    if info is None:
        return
    now = office.clock.now()
    counts["waiting"] += info["num_pending"]
    counts["pending"] += info["num_ack_pending"]
    waiting = []
    for key, row in (await office.book.under(f"story.{well.key}")).items():
        story = Story.load(row.value)
        if story.is_in_hand(now) or seq_in(key) <= info["ack_floor"]["stream_seq"]:
            continue
        counts["pending"] -= 1
        if story.state is State.HELD:
            counts["held"] += 1
        elif story.due_at is not None and story.due_at > now:
            counts["scheduled"] += 1
            due.append(story.due_at)
        else:
            counts["waiting"] += 1
            waiting.append(seq_in(key))
    if waiting and (one := await get(office.link, well.stream, min(waiting))) is not None:
        oldest.append(one.at)
    if info["num_pending"]:
        for subject in {group.queue, group.lane}:
            if well.stream.takes(subject):
                next_seq = info["delivered"]["stream_seq"] + 1
                oldest.extend(one.at for one in await after(office.link, well.stream, subject, seq=next_seq, most=1))


async def _later(office: Office, stream: Stream, queue: str) -> list[datetime]:
    """When what was published with a delay is due."""
    subject = later_of(queue)
    if not stream.takes(later_of(queue, "x")):
        return []
    found: list[datetime] = []
    seq = 1
    while page := await after(office.link, stream, subject, seq=seq, most=_PAGE):
        found += [at for one in page if (at := instant_of(one.heading.get(DUE))) is not None]
        seq = page[-1].seq + 1
    return found
