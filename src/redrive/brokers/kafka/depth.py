"""How much of a group's work is where, read from the cluster alone: it is the same whoever asks."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from redrive.brokers.kafka.entry import Entry, entry_in_lane, entry_in_queue
from redrive.brokers.kafka.names import lane_of
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.record import Place
from redrive.brokers.kafka.suspects import held_in, paused_in, suspects_in
from redrive.brokers.kafka.window import Window, load_window
from redrive.core.errors import QueueNotFound
from redrive.core.ports import Depth

_COUNTED: Final = 50_000
"""Offsets of a partition that are counted one by one; beyond, each is taken for a message that waits."""
_ROUNDS: Final = 5


def depth_of(office: Office, queue: str, *, group: str, dead: int) -> Depth:
    """Count. What moves meanwhile is counted again, a few times. Raises `QueueNotFound`."""
    lane = lane_of(queue, group)
    if not office.topics.exists(queue) or (group and not office.topics.exists(lane)):
        raise QueueNotFound(
            f"queue {queue!r} has no group {group!r}" if group else f"no queue {queue!r} on this cluster"
        )
    places = office.topics.places(queue) + (office.topics.places(lane) if group else [])
    for _ in range(_ROUNDS):
        commits = _committed(office, queue, group, places) if group else {}
        found = _count(office, queue, group=group, places=places, commits=commits, dead=dead)
        if not group or _committed(office, queue, group, places) == commits:
            break
    return found


def _committed(office: Office, queue: str, group: str, places: Iterable[Place]) -> dict[Place, tuple[int, str]]:
    found: dict[Place, tuple[int, str]] = {}
    for topic in (queue, lane_of(queue, group)):
        reader = office.topics.dlq.reader(topic, queue=queue, group=group)
        found |= office.positions.committed(reader, [place for place in places if place[0] == topic])
    return found


def _count(
    office: Office,
    queue: str,
    *,
    group: str,
    places: Iterable[Place],
    commits: Mapping[Place, tuple[int, str]],
    dead: int,
) -> Depth:
    ends = office.promises.ends(places)
    starts = office.positions.starts(places)
    windows = {
        place: load_window(*commits[place])[0] if place in commits else Window(starts[place]) for place in places
    }
    spans = {place: (max(window.low, starts[place]), ends[place]) for place, window in windows.items()}
    near = {place: (low, min(end, low + _COUNTED)) for place, (low, end) in spans.items()}
    far = sum(end - near[place][1] for place, (_, end) in spans.items() if end > near[place][1])
    now = office.clock.now()
    entries: list[Entry] = []
    in_flight = 0
    for read in office.logs.read(near):
        window = windows[read.topic, read.partition]
        if window.is_handed(read.offset):
            in_flight += 1
        elif not window.is_done(read.offset):
            entries.append(entry_in_queue(read) if read.topic == queue else entry_in_lane(read, queue=queue))
    rows = office.book(queue, group).refresh() if group else {}
    suspects = list(suspects_in(rows, queue=queue, now=now))
    alone = sum(suspect.mark is not None and not suspect.mark.is_over(now, None) for suspect in suspects)
    waiting = [entry for entry in entries if entry.due_at is None or entry.due_at <= now]
    free = [each.entry for each in suspects if each.mark is None or each.mark.is_over(now, None)]
    due = [entry.due_at for entry in entries if entry.due_at is not None and entry.due_at > now]
    return Depth(
        waiting=len(waiting) + len(free) + far,
        in_flight=in_flight + alone,
        scheduled=len(due),
        held=sum(1 for _ in held_in(rows, queue=queue, now=now)),
        dead=dead,
        oldest_at=min(_published([*waiting, *free]), default=None),
        next_due_at=min(due, default=None),
        paused=paused_in(rows),
    )


def _published(entries: Iterable[Entry]) -> Iterable[datetime]:
    return (entry.message.published_at for entry in entries if entry.message.published_at is not None)
