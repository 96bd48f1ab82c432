"""A group's beginning: its topics, and where it starts to read."""

from contextlib import suppress

from redrive.brokers.kafka.names import book_of, group_of, lane_of
from redrive.brokers.kafka.office import Office
from redrive.core.errors import BrokerError


def begin(office: Office, queue: str, group: str) -> None:
    """Begin queue and group, if need be. The first group gets what was waiting, later ones what comes from now on.

    A consumer group of Kafka that has this name and has read the queue before is taken over where it stands.
    """
    topics = office.topics
    topics.ensure(queue)
    if topics.exists(lane_of(queue, group)):
        return
    first = not any(found is not None and found[0] == queue for found in map(group_of, topics.all()))
    places, known = topics.places(queue), topics.dlq.reader(queue, queue=queue, group=group)
    stood = office.positions.committed(group, places)
    starts = office.promises.ends(places) if not first else office.positions.starts(places)
    if not office.positions.committed(known, places):
        with suppress(BrokerError):  # another process was quicker, and has begun to read
            office.positions.commit(known, starts | {place: offset for place, (offset, _) in stood.items()})
    topics.ensure(book_of(queue, group))
    topics.ensure_lane(queue, group)
