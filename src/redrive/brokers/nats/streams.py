"""Streams: found by the subjects they take, begun where nobody has one, never changed."""

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

from redrive.brokers.nats.address import Terms
from redrive.brokers.nats.errors import STREAM_NAME_TAKEN, Refused
from redrive.brokers.nats.link import Link
from redrive.brokers.nats.names import (
    BUCKET_STREAM,
    KEYS,
    covers,
    lanes_of,
    later_of,
    part_of,
    stream_name,
)
from redrive.core.errors import ConfigError, QueueNotFound
from redrive.core.place import DLQ, queue_of
from redrive.core.ports import LEASE

MARK: Final = "redrive-queue"
"""Metadata of a stream: the queue for which we began it."""
GROUP: Final = "redrive-group"
KIND: Final = "redrive-kind"
DLQ_KIND: Final = "dlq"
_NANOS: Final = 1_000
_WINDOW_IN_LEASES: Final = 30
_LIMITS: Final = "limits"
_HISTORY: Final = 64
"""Values of a key that the bucket keeps: as many as it can, see `Book.drop`."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as the server describes it."""

    name: str
    config: dict[str, Any]
    created: str

    @property
    def ours(self) -> str:
        """The queue for which we began it; empty for one that others began."""
        return str((self.config.get("metadata") or {}).get(MARK, ""))

    @property
    def is_dlq(self) -> bool:
        """Whether we began it for dead letters: those who are strict have subjects of their own."""
        return (self.config.get("metadata") or {}).get(KIND) == DLQ_KIND

    @property
    def subjects(self) -> list[str]:
        return list(self.config.get("subjects") or ())

    def takes(self, subject: str) -> bool:
        """Whether it takes what is published on a subject."""
        return any(covers(pattern, subject) for pattern in self.subjects)

    @property
    def keeps_acked(self) -> bool:
        """Whether acked messages stay until somebody takes them away."""
        return str(self.config.get("retention", _LIMITS)) == _LIMITS

    @property
    def window(self) -> timedelta:
        """For how long the server knows a message again."""
        return timedelta(microseconds=int(self.config.get("duplicate_window") or 0) // _NANOS)


class Streams:
    """The streams of one server, remembered by queue. Safe for many tasks."""

    def __init__(self, link: Link, terms: Terms) -> None:
        self._link = link
        self._terms = terms
        self._known: dict[str, Stream] = {}
        self._has_bucket = False

    def forget(self) -> None:
        """Look again at the next question: somebody may have deleted a stream."""
        self._known.clear()
        self._has_bucket = False

    async def find(self, queue: str) -> Stream | None:
        """The stream that takes this subject; None if there is none."""
        if (known := self._known.get(queue)) is not None:
            return known
        names = (await self._link.api("STREAM.NAMES", {"subject": queue}))["streams"] or ()
        for name in names:
            stream = await self.look(name)
            if stream is not None and stream.takes(queue):
                self._known[queue] = stream
                return stream
        return None

    async def look(self, name: str) -> Stream | None:
        """A stream by its own name."""
        try:
            told = await self._link.api(f"STREAM.INFO.{name}")
        except QueueNotFound:
            return None
        return Stream(name, told["config"], told["created"])

    async def of(self, queue: str) -> Stream:
        """The stream of a queue. Raises `QueueNotFound`."""
        found = await self.find(queue)
        if found is None:
            raise QueueNotFound(f"nats: no stream takes {queue!r}")
        return found

    async def ensure(self, queue: str) -> Stream:
        """The stream of a queue, begun if there is none."""
        is_dlq = queue_of(DLQ, queue) is not None
        config = self._dead(queue, lease=LEASE) if is_dlq else self._work(queue)
        return await self.find(queue) or await self._begin(queue, config)

    async def ensure_dlq(self, dlq: str, *, queue: str, lease: timedelta = LEASE) -> Stream:
        """The stream for dead letters, begun if there is none. It must not be the one that the messages are in.

        Raises `ConfigError` if a wildcard of the queue's stream takes the letters: they would be worked on again.
        """
        found = await self.check_dlq(dlq, queue=queue)
        return found or await self._begin(dlq, self._dead(dlq, lease=lease))

    async def check_dlq(self, dlq: str, *, queue: str) -> Stream | None:
        """The stream for dead letters, if there is one and it can be used for those of this queue."""
        found = await self.find(dlq)
        if found is not None and queue != dlq and found.takes(queue):
            raise ConfigError(
                f"dlq.name: stream {found.name!r} takes {', '.join(found.subjects)}, and so the dead letters on {dlq!r}"
                f" beside the messages on {queue!r}; choose a DLQ name that it does not cover, such as 'dead.{queue}'"
            )
        if found is not None and self._terms.strict and not found.takes(f"{dlq}.x.0"):
            raise ConfigError(
                f"dlq.strict: stream {found.name!r} takes no subject below {dlq!r}; add {dlq}.*.* to its subjects"
            )
        return found

    async def lanes(self, queue: str) -> Stream:
        """The stream of a queue's lanes: its own, or where others began that one, one beside it."""
        stream = await self.ensure(queue)
        if stream.takes(lanes_of(queue).replace("*", "x")):
            return stream
        key = f"lanes of {queue}"
        if key not in self._known:
            name = f"rd_lanes_{stream_name(queue)}"
            found = await self.find(lanes_of(queue).replace("*", "x"))
            config = {**self._common(queue), "name": name, "subjects": [lanes_of(queue), part_of(queue)]}
            self._known[key] = found or await self._create(name, config)
        return self._known[key]

    async def ensure_bucket(self) -> None:
        """The bucket with what we know about messages, groups and workers."""
        if self._has_bucket:
            return
        if await self.look(BUCKET_STREAM) is None:
            config = {
                **self._common(""),
                "name": BUCKET_STREAM,
                "subjects": [f"{KEYS}.>"],
                "max_msgs_per_subject": _HISTORY,
                "discard": "new",
                "allow_msg_ttl": True,
                "allow_rollup_hdrs": True,
            }
            await self._create(BUCKET_STREAM, config)
        self._has_bucket = True

    async def all(self) -> list[Stream]:
        """Every stream."""
        found: list[Stream] = []
        while True:
            told = await self._link.api("STREAM.LIST", {"offset": len(found)})
            page = told["streams"] or ()
            found += [Stream(one["config"]["name"], one["config"], one["created"]) for one in page]
            if not page or len(found) >= told["total"]:
                return found

    async def _begin(self, queue: str, config: dict[str, Any]) -> Stream:
        name = stream_name(queue)
        taken = await self.look(name)
        if taken is not None and not taken.takes(queue):
            name = f"{name}-{sha256(queue.encode()).hexdigest()[:8]}"
        stream = await self._create(name, {**config, "name": name})
        self._known[queue] = stream
        return stream

    async def _create(self, name: str, config: dict[str, Any]) -> Stream:
        try:
            told = await self._link.api(f"STREAM.CREATE.{name}", config)
        except (Refused, ConfigError) as error:
            begun = await self.look(name)  # by another process, at the same time
            if begun is None or (isinstance(error, Refused) and error.code != STREAM_NAME_TAKEN):
                raise
            return begun
        return Stream(name, told["config"], told["created"])

    def _common(self, queue: str) -> dict[str, Any]:
        return {
            "retention": _LIMITS,
            "storage": "file",
            "num_replicas": self._terms.replicas,
            "max_msgs_per_subject": -1,
            "allow_direct": True,
            "duplicate_window": _nanos(self._terms.window),
            "metadata": {MARK: queue},
        }

    def _work(self, queue: str) -> dict[str, Any]:
        """A queue has no limit of its own: nothing is pushed out of it, nothing is refused before the disk is full."""
        return {
            **self._common(queue),
            "subjects": [queue, lanes_of(queue), later_of(queue), part_of(queue)],
            "allow_msg_schedules": True,
            "allow_atomic": True,
        }

    def _dead(self, dlq: str, *, lease: timedelta) -> dict[str, Any]:
        """A DLQ that is full refuses letters, so that messages stay where they are; it never pushes letters out."""
        terms = self._terms
        return {
            **self._common(dlq),
            "subjects": [dlq, f"{dlq}.*.*", lanes_of(dlq), part_of(dlq)],
            "discard": "new",
            "max_age": _nanos(terms.max_age),
            "max_bytes": terms.max_bytes,
            "max_msgs": terms.max_msgs,
            "duplicate_window": _nanos(max(terms.window, _WINDOW_IN_LEASES * lease)),
            "allow_atomic": True,
            "metadata": {MARK: dlq, KIND: DLQ_KIND},
        }


def _nanos(delta: timedelta) -> int:
    return delta // timedelta(microseconds=1) * _NANOS
