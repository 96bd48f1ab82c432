"""Who is at work: each worker's last word, in a topic that keeps nothing for long."""

import json
import os
import socket
from datetime import datetime, timedelta
from typing import Final

from redrive.brokers.kafka.names import ALIVE, group_id
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.record import Record, from_micros, to_micros, to_millis
from redrive.core.ports import Alive, Options

HEARD_OF: Final = timedelta(seconds=30)


async def beat(office: Office, queue: str, *, group: str, options: Options, paused: str | None) -> None:
    """Say that a worker is at work. The topic is there."""
    told = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "version": options.version,
        "paused": paused,
        "seen": to_micros(office.clock.now()),
    }
    await office.outbox.send(_record(queue, group, options.owner, json.dumps(told).encode(), office.clock.now()))


async def sign_off(office: Office, queue: str, *, group: str, options: Options) -> None:
    """Say that a worker has left."""
    await office.outbox.send(_record(queue, group, options.owner, b"{}", office.clock.now()))


def heard_of(office: Office, queue: str, *, group: str) -> list[Alive]:
    """The workers of a group that have spoken lately, and have not left."""
    if not office.topics.exists(ALIVE):
        return []
    now, place = office.clock.now(), (ALIVE, 0)
    end = office.promises.ends([place])[place]
    start = office.positions.since({place: to_millis(now - HEARD_OF)})[place]
    latest: dict[str, Alive] = {}
    for read in office.logs.read({place: (start if start >= 0 else end, end)}):
        whose, _, owner = (read.key or b"").decode().partition(" ")
        told = json.loads(read.value or b"{}")
        if whose != group_id(queue, group):
            continue
        latest.pop(owner, None)
        if told:
            seen_at = from_micros(told["seen"])
            latest[owner] = Alive(owner, told["host"], told["pid"], told["version"], seen_at, told["paused"])
    return [worker for worker in latest.values() if now - worker.seen_at <= HEARD_OF]


def _record(queue: str, group: str, owner: str, value: bytes, now: datetime) -> Record:
    return Record(ALIVE, value, (), f"{group_id(queue, group)} {owner}".encode(), 0, to_millis(now))
