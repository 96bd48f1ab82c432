"""The lane of a group: the topic in which its retries wait, by how long they wait, and what is sent back to it."""

from bisect import bisect_left
from datetime import timedelta
from typing import Final
from zlib import crc32

from redrive.core.message import Message

TIERS: Final = (
    timedelta(seconds=10),
    timedelta(minutes=1),
    timedelta(minutes=10),
    timedelta(hours=2),
    timedelta(days=1),
)
"""Up to which delay messages wait in one partition; longer ones in the last. Due times are exact in each.

A partition's lowest unfinished message holds back what may be read beyond it, so a message that waits for a day must
not stand before one that waits for a second.
"""
COUNT: Final = len(TIERS) + 1


def partition_in(partitions: int, message: Message, delay: timedelta) -> int:
    """Where in a lane of so many partitions a message waits so long: those of one key in one place."""
    tier = bisect_left(TIERS, delay)
    shards = max(partitions // COUNT, 1)
    shard = crc32(message.key if message.key is not None else message.id.encode()) % shards
    return min(tier * shards + shard, partitions - 1)
