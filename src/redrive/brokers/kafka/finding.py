"""Finding a record by where it stands in its topic."""

import re
from typing import Final

from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.record import Read

_WHERE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,18})")


def find(office: Office, topic: str, where: str) -> Read | None:
    """The record at `partition-offset`; None if there is none, or none any more. Blocks."""
    found = _WHERE.fullmatch(where)
    topics = office.topics
    if found is None or not topics.exists(topic) or int(found[1]) >= topics.partitions(topic):
        return None
    place, offset = (topic, int(found[1])), int(found[2])
    start, end = office.positions.starts([place])[place], office.promises.ends([place])[place]
    reads = office.logs.read({place: (offset, offset + 1)}) if start <= offset < end else ()
    return reads[0] if reads else None
