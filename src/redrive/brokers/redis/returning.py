"""Sending letters back: to the lane of the group that failed, or into the queue itself, once per letter and generation.

The entry is added first and judged in the same transaction: a script alone could not write thousands of fields.
"""

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from redrive.brokers.redis.entry import name_bytes, whole_millis, without_marks, write_entry
from redrive.brokers.redis.joining import join
from redrive.brokers.redis.keys import QueueKeys
from redrive.brokers.redis.lane import BACK, write_lane
from redrive.brokers.redis.scripts import script
from redrive.brokers.redis.settling import in_calls
from redrive.brokers.redis.transaction import together
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.marks import write_marks
from redrive.core.message import Message
from redrive.core.redrive import SendBack

SENT_KNOWN_FOR: Final = whole_millis(timedelta(days=7))
"""How long a letter is known to have been sent back. Redrives are resumed within hours or days, not months."""
_SHORT: Final = 1024

Command = tuple[Value, ...]


class Way(NamedTuple):
    """Where a letter goes, and as what."""

    stream: str
    fields: list[bytes]
    before_id: str = ""


async def send_back(wire: Wire, items: Sequence[SendBack], *, payload: bytes, largest: int) -> list[str]:
    """Send letters of one queue back; return their message ids, the same ones when repeated.

    A group that nobody has joined yet is joined.
    """
    for queue, group in {(item.queue, item.group) for item in items}:
        if group is not None:
            await join(wire, QueueKeys(queue).group(group))
    ids: list[str] = []
    for part in in_calls(items):
        commands: list[Command] = []
        for item in part:
            way = way_of(item, payload=payload, largest=largest)
            once = QueueKeys(item.queue).once_back(item.once_key)
            commands += added_once(way, once=once, life=SENT_KNOWN_FOR, known=bool(commands))
        answers = await together(wire, commands)
        ids += [message_id.decode() for message_id in answers[1::2]]
    return ids


def way_of(item: SendBack, *, payload: bytes, largest: int) -> Way:
    """The way of a letter. The group it goes to, if any, must have been joined."""
    if item.group is None:
        message = Message("", item.queue, item.body, without_marks(item.headers), item.key)
        marks = [part for name, value in write_marks(item) for part in (name_bytes(name), value)]
        return Way(item.queue, [*write_entry(message, payload=payload), *marks])
    lane = QueueKeys(item.queue).group(item.group).lane
    return Way(lane, write_lane(item, largest=largest), BACK)


def added_once(way: Way, *, once: str, life: int, known: bool = False) -> list[Command]:
    """What adds an entry unless its once-key is known; the second answer is the id. To be carried out together.

    The script is `known` behind another of its kind in the same transaction; elsewhere it goes along, since a
    transaction goes on after a script that the server does not know, and nobody would judge what was added.
    """
    judge = script("once")
    run: Command = ("EVALSHA", judge.sha) if known else ("EVAL", judge.source)
    arguments: Command = (2, way.stream, once, life, way.before_id, print_of(way.fields))
    return [("XADD", way.stream, "*", *way.fields), (*run, *arguments)]


def print_of(fields: Sequence[bytes]) -> str:
    """What tells the entry of these fields from others: a hash of those that are short."""
    short = b"".join([part for part in fields if len(part) <= _SHORT])
    return hashlib.sha1(short, usedforsecurity=False).hexdigest()
