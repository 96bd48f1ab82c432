"""What a subscription is told about its queue and its worker."""

from dataclasses import dataclass, replace

from redrive.brokers.names import check_names
from redrive.brokers.redis.keys import tag_of
from redrive.core.errors import ConfigError
from redrive.core.ports import Clock, EventSink, Options


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One worker's terms: its options, and what was found out about the queue when it joined.

    `broker` is the broker's name in letters. `dlq` and `outcomes` are names of streams. `trims` says whether what every
    group has done is taken from the stream. `slot` is the hash tag that every name must share, on a cluster; empty
    elsewhere. `largest` is how many bytes a field may have on its way to the server.
    """

    options: Options
    clock: Clock
    sink: EventSink | None
    broker: str
    incarnation: str
    dlq: str
    outcomes: str
    payload: bytes
    trims: bool
    largest: int
    slot: str = ""

    def output_mistake(self, queue: str) -> str:
        """Why nothing can be put out to this queue in the step of an ack; empty if it can."""
        try:
            check_names(queue=queue)
        except ConfigError as error:
            return str(error)
        return slot_mistake("output", queue, slot=self.slot)

    def after_rejoining(self, incarnation: str) -> "Setting":
        """The same, in another life of the queue."""
        return replace(self, incarnation=incarnation)


def slot_mistake(what: str, name: str, *, slot: str) -> str:
    """Why a stream cannot be written to in one step with a queue of a cluster; empty if it can."""
    if not slot or tag_of(name) == slot:
        return ""
    return (
        f"{what}: expected a name in the cluster slot of the queue, got {name!r}: what moves in one step must be in"
        f" one slot; put {{{slot}}} into the name"
    )
