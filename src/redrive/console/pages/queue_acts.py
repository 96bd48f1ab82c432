"""What a person does to a queue: pause it, resume it, let run again what is held."""

from typing import NamedTuple

from starlette.responses import Response

from redrive.console.fields import text_in
from redrive.console.visit import Visit, act
from redrive.console.words import several
from redrive.core.errors import ConfigError, QueueNotFound
from redrive.core.ports import Broker
from redrive.triage import queues


class _Lane(NamedTuple):
    broker: Broker
    queue: str
    group: str


@act("/queues/pause", "queue_pause", may="pause")
async def _pause(visit: Visit) -> Response:
    lane, why = _lane(visit), text_in(visit.form, "why")
    await queues.pause(visit.desk, lane.broker, lane.queue, group=lane.group, why=why)
    return _done(visit, f"{lane.queue} is paused for {lane.group}: nothing is fetched until somebody resumes it.")


@act("/queues/resume", "queue_resume", may="pause")
async def _resume(visit: Visit) -> Response:
    lane = _lane(visit)
    await queues.resume(visit.desk, lane.broker, lane.queue, group=lane.group)
    return _done(visit, f"{lane.queue} is resumed for {lane.group}.")


@act("/queues/release", "queue_release", may="pause")
async def _release(visit: Visit) -> Response:
    lane = _lane(visit)
    number = await queues.release(visit.desk, lane.broker, lane.queue, group=lane.group)
    return _done(visit, f"{several(number, 'held message')} of {lane.queue} may run again for {lane.group}.")


def _lane(visit: Visit) -> _Lane:
    """The lane that the form names. Raises `ConfigError`, and `QueueNotFound` for a broker that is not there."""
    named = {name: visit.form.get(name, "") for name in ("broker", "queue", "group")}
    if missing := [name for name, value in named.items() if not value]:
        raise ConfigError([f"{name}: expected one" for name in missing])
    if named["broker"] not in visit.service.brokers:
        raise QueueNotFound(f"no broker is named {named['broker']!r}")
    return _Lane(visit.service.brokers[named["broker"]], named["queue"], named["group"])


def _done(visit: Visit, said: str) -> Response:
    return visit.go(visit.url("overview"), said=said)


routes = [_pause, _resume, _release]
