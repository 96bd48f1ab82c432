"""While a redrive waits: what its consumers are doing, in one sentence."""

import asyncio
from collections.abc import Mapping

from redrive.core.errors import BrokerError, ConfigError, QueueNotFound
from redrive.core.ports import Broker
from redrive.core.redrive import Gate, Progress, Redrive, RedriveState, Target, Waiting, next_move, why_waiting

PATIENCE = 2.0  # seconds
_LOOKED_AT = 20  # targets; a redrive to more queues than that is told about the first ones
_AT_WORK = why_waiting(Waiting(alive=1))


async def waiting(
    redrive: Redrive, progress: Progress, brokers: Mapping[str, Broker], *, patience: float = PATIENCE
) -> str:
    """Why a redrive does not go on just now; empty if it does, or has ended. Takes so many seconds at most."""
    if redrive.state is not RedriveState.RUNNING or next_move(redrive, progress).gate is not Gate.WAIT:
        return ""
    try:
        async with asyncio.timeout(patience):
            return await why(redrive, brokers)
    except TimeoutError:
        return f"the broker did not answer within {patience:g} s"


async def why(redrive: Redrive, brokers: Mapping[str, Broker]) -> str:
    """Why nothing comes back: the first target where something is wrong, else that the consumers are working."""
    for target in redrive.targets[:_LOOKED_AT]:
        broker = brokers.get(target.broker)
        if broker is None:
            continue
        if target.group:
            said = why_waiting(await _look(broker, target, redrive.failed_on))
        else:
            said = await _at_queue(broker, target.queue, confirm=redrive.confirm)
        if said != _AT_WORK:
            return said if len(redrive.targets) == 1 else f"{target.queue}: {said}"
    return _AT_WORK


async def _at_queue(broker: Broker, queue: str, *, confirm: str) -> str:
    """Of letters that went to a queue itself: no group of ours speaks for them."""
    try:
        await broker.depth(queue, group="")  # only a queue that nobody reads has this
    except QueueNotFound:
        return f"nothing reports back: {_UNREPORTED[confirm]}"
    except (BrokerError, ConfigError) as error:
        return f"the broker does not answer: {error}"
    return f"no group reads {queue} yet"


_UNREPORTED = {
    "reported": "tell the outcome of each letter, or it ends unconfirmed",
    "quiet": "what does not die again in time is taken as done",
    "manual": "tell the outcome of each letter",
}


async def _look(broker: Broker, target: Target, failed_on: tuple[str, ...]) -> Waiting:
    try:
        depth = await broker.depth(target.queue, group=target.group)
        alive = await broker.alive(target.queue, group=target.group)
    except QueueNotFound:
        return Waiting()
    except (BrokerError, ConfigError) as error:
        return Waiting(paused=f"the broker does not answer: {error}")
    holding_back = next((worker.paused for worker in alive if worker.paused), None)
    if any(worker.paused is None for worker in alive):
        holding_back = None
    versions = tuple(worker.version for worker in alive if worker.version)
    return Waiting(depth.paused or holding_back, len(alive), versions, failed_on)
