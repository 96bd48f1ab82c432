"""The ports of messaging, and the small values that cross them.

Batch-first: one call for many messages, the single message as the unit of guarantee. Every method survives being
called twice with the same arguments: the second call gives the first one's answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol, runtime_checkable

from redrive.core.delivery import Delivery
from redrive.core.duration import NOW
from redrive.core.event import Event
from redrive.core.letter import DeadLetter
from redrive.core.message import Message
from redrive.core.outcome import Settled, Settlement
from redrive.core.place import DLQ, OUTCOMES, DeadLetterPlace
from redrive.core.redrive import RedriveOutcome, SendBack

LEASE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an adapter can do; suites and docs ask this, never which adapter it is."""

    atomic_give_up: bool = True  # dead letter and ack in one step
    can_remove: bool = True  # single entries of the DLQ can be removed
    durable: bool = True  # what was published outlives the process
    many_processes: bool = True  # several processes may share a queue
    delay_grid: tuple[timedelta, ...] = ()  # the only delays kept exactly; empty: any
    thread_heartbeat: bool = True  # a subscription may be called from a second event loop in another thread
    dlq: str = DLQ  # what the DLQ of a queue is called, unless its consumer says otherwise
    late_success: bool = False  # a plain ack of one who has lost the message counts: the work is done
    ids_across_queues: bool = True  # an id is given once on the broker, not only once on its queue
    any_name: bool = True  # a DLQ or an output may be called anything, and still be written in the same step
    lists_all: bool = True  # every queue is listed, also one that somebody else has begun
    rows: bool = False  # new messages are handed out in rows (`core.row`), and rows are settled as they are
    keeps_acked: bool = False  # a queue keeps what was acked until it is trimmed
    prefetch: int = 500  # the most that is fetched ahead, unless a consumer says otherwise
    outcomes: str = OUTCOMES  # what the queue is called in which the fate of redriven messages is told


@dataclass(frozen=True, slots=True)
class Obituary:
    """How the owner of a delivery died, as its supervisor saw it; added to the crash attempt."""

    owner: str
    text: str


@dataclass(frozen=True, slots=True)
class Options:
    """How a group subscribes. `owner` names one worker, unique for ever.

    Where a queue keeps what was acked, `trim` says whether that may be taken from it: `acked`, `never`, or None for
    the broker's own rule. With `moves`, an ack takes the message from the queue at once, for every group. `output` is
    the queue to which settlements will send what the handler returned.
    """

    owner: str
    lease: timedelta = LEASE
    dlq: DeadLetterPlace = field(default_factory=DeadLetterPlace)
    version: str = ""
    obituary: Obituary | None = None
    trim: Literal["acked", "never"] | None = None
    moves: bool = False
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Depth:
    """How much of a group's work is where. Every message of the group is in exactly one of the first four.

    `waiting` includes suspects. `dead` counts the entries of the queue's default DLQ.
    """

    waiting: int = 0
    in_flight: int = 0
    scheduled: int = 0
    held: int = 0
    dead: int = 0
    oldest_at: datetime | None = None
    next_due_at: datetime | None = None
    paused: str | None = None


@dataclass(frozen=True, slots=True)
class Alive:
    """One worker that has been heard of lately. `state` is what it tells about itself, if anything: JSON."""

    name: str
    host: str
    pid: int
    version: str
    seen_at: datetime
    paused: str | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the doctor looked at: what it found, which loss it bears on, and what to do."""

    check: str
    level: Literal["ok", "warn", "fail"]
    found: str
    prevents: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class DeadEntry:
    """One entry of a broker's own DLQ."""

    entry_id: str
    letter: DeadLetter


class Clock(Protocol):
    """Time as a dependency."""

    def now(self) -> datetime:
        """The current instant, aware UTC."""
        ...

    async def sleep(self, delay: timedelta) -> None:
        """Return after `delay`."""
        ...


class EventSink(Protocol):
    """Where everyone says what happened."""

    def emit(self, event: Event) -> None:
        """Take note of an event. Never raises, never blocks."""
        ...


class NativeDeadLetters(Protocol):
    """The broker's own DLQ of one queue; needs no store."""

    @property
    def name(self) -> str:
        """The DLQ's name on the broker."""
        ...

    async def peek(self, count: int = 10, *, start: str | None = None) -> Sequence[DeadEntry]:
        """The oldest entries, from the entry id `start` on (inclusive); nothing is claimed or changed."""
        ...

    async def length(self) -> int:
        """How many entries there are: 0 for a DLQ that does not exist, an error for a broker that does not answer."""
        ...

    async def redrive(self, entry_id: str) -> str:
        """Move one entry back, generation + 1, in one step; return the new message id.

        A letter of one of our groups goes to that group only, a foreign one to the queue it came from. Raises
        `LetterNotFound`, also the second time.
        """
        ...

    async def remove(self, entry_id: str) -> None:
        """Remove one entry for good. Raises `LetterNotFound`."""
        ...

    async def send(self, letter: DeadLetter) -> None:
        """Write a letter, once per (letter_id, generation). Raises `DeadLetterError` if it was not written."""
        ...


@runtime_checkable
class TellsState(Protocol):
    """A subscription whose heartbeat carries a `state`, for whoever looks at who is alive. Not every adapter's does."""

    state: str


class Subscription(Protocol):
    """A group's hold on a queue, for one worker."""

    @property
    def incarnation(self) -> str:
        """A name for this life of the queue: a queue deleted and made again has another."""
        ...

    async def fetch(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        """Up to `limit` deliveries, waiting up to `wait` for the first.

        Never a suspect. What it returns may have started: noted durably once per call. Empty while the group is
        paused. An adapter that has rows gives `InRows`: nothing has happened yet to what is in them.
        """
        ...

    async def fetch_suspect(self) -> Delivery | None:
        """One message that may have been running when its worker died, to be run alone.

        Its mark is durable before this returns: if the process dies now, that is one more crash. A crash is added
        to the trail by the broker, with the obituary if its owner matches.
        """
        ...

    async def settle(self, items: Sequence[Settlement | Delivery]) -> Sequence[Settled]:
        """Carry out outcomes: one round trip, one answer per item, in order. A bare delivery is a plain success.

        Who hands out rows is given rows, or parts of them, that went well: as `InRows`, with other items behind them.
        One bad item never fails the others. Raises `BrokerUnavailable` if nothing is known to have been done.
        """
        ...

    async def extend(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """Renew the lease; return those that are lost."""
        ...

    async def release(self, deliveries: Sequence[Delivery]) -> None:
        """Hand back unfinished deliveries, spending no attempt; lost ones are passed over."""
        ...

    async def heartbeat(self, *, paused: str | None = None) -> int:
        """Write this worker's `Alive` record and keep house: what a dead worker held becomes suspect.

        Returns how many suspects wait.
        """
        ...

    async def aclose(self) -> None:
        """Sign off. Idempotent. What is still in hand stays leased until it is released or the lease ends."""
        ...


class Broker(Protocol):
    """A message system. One per process and URL; safe for many tasks of one event loop."""

    @property
    def name(self) -> str:
        """The broker's name in letters: part of a letter's identity."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this adapter can do."""
        ...

    async def publish(self, queue: str, messages: Sequence[Message], *, delay: timedelta = NOW) -> Sequence[str]:
        """Enqueue messages (their `id` is ignored, `rd-*` headers are stripped); return their ids in order.

        All or none. Durable when it returns.
        """
        ...

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        """Join a group, creating queue and group if need be. The first group gets what was waiting."""
        ...

    def dead_letters(self, queue: str, *, place: DeadLetterPlace | None = None) -> NativeDeadLetters:
        """The queue's DLQ at its default place, or at the place given."""
        ...

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        """Send letters back, once per letter_id:generation; return message ids in order, the same when repeated."""
        ...

    async def queues(self) -> Sequence[tuple[str, str]]:
        """Every (queue, group) known to the broker; the group is empty where nobody has subscribed yet."""
        ...

    async def depth(self, queue: str, *, group: str) -> Depth:
        """How much is where, exactly. Raises `QueueNotFound`."""
        ...

    async def pause(self, queue: str, *, group: str, why: str | None) -> None:
        """Stop (or with None: resume) fetching by every worker of the group; durable, obeyed within 2 s."""
        ...

    async def free(self, queue: str, *, group: str) -> int:
        """Let messages that are held (DLQ off) run again; return how many."""
        ...

    async def alive(self, queue: str, *, group: str) -> Sequence[Alive]:
        """The workers of the group heard of in the last 30 seconds."""
        ...

    async def diagnose(self) -> Sequence[Finding]:
        """What could lose messages here, and what to do about it."""
        ...

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
        ...


class DeadLetterQueue(Protocol):
    """A place for dead letters apart from the queue's own broker: for the wrapper, and for tests."""

    async def send(self, letter: DeadLetter) -> None:
        """Write a letter durably. Raises `DeadLetterQueueClosed`, `DeadLetterQueueFull` or `DeadLetterError`."""
        ...

    async def report(self, outcome: RedriveOutcome) -> None:
        """Tell what became of a redriven message, so that foreign consumers close the loop too."""
        ...

    async def aclose(self) -> None:
        """Close. Idempotent; sending afterwards raises `DeadLetterQueueClosed`."""
        ...
