"""The Redis broker: any stream is a queue, whoever writes it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from redrive.brokers.names import check_names
from redrive.brokers.redis.address import Address
from redrive.brokers.redis.answers import RedisAnswers
from redrive.brokers.redis.dead_letters import RedisDeadLetters, is_entry_id
from redrive.brokers.redis.depth import measure
from redrive.brokers.redis.doctor import examine
from redrive.brokers.redis.entry import OWN_PAYLOAD, read_entry, write_entry
from redrive.brokers.redis.groups import free, list_queues, pause, workers
from redrive.brokers.redis.joining import join, register
from redrive.brokers.redis.keys import QueueKeys, tag_of
from redrive.brokers.redis.pieces import too_large
from redrive.brokers.redis.publishing import add, add_later
from redrive.brokers.redis.returning import send_back
from redrive.brokers.redis.server import Server
from redrive.brokers.redis.setting import Setting, slot_mistake
from redrive.brokers.redis.subscription import RedisSubscription
from redrive.brokers.redis.transaction import confirm
from redrive.core.duration import NOW
from redrive.core.errors import BrokerError, ConfigError
from redrive.core.message import Message, without_reserved
from redrive.core.place import DeadLetterPlace, named, queue_of
from redrive.core.ports import (
    Alive,
    Capabilities,
    Clock,
    Depth,
    EventSink,
    Finding,
    NativeDeadLetters,
    Options,
    Subscription,
)
from redrive.core.ports.answers import Answers
from redrive.core.redrive import SendBack

CAPABILITIES: Final = Capabilities(
    dlq="{queue}:dlq",
    outcomes="{queue}:outcomes",
    keeps_acked=True,
    ids_across_queues=False,
    late_success=True,
    lists_all=False,
)
CLUSTER_CAPABILITIES: Final = replace(CAPABILITIES, dlq="{{queue}}:dlq", outcomes="{{queue}}:outcomes", any_name=False)


class RedisBroker:
    """A `Broker` on a Redis server, on the primary that sentinels name, or on a cluster.

    Nothing is opened until it is used. May be used from several event loops; each has its own connections.
    """

    def __init__(self, url: str, *, name: str = "redis", clock: Clock, sink: EventSink | None = None) -> None:
        self._address = Address.of(url)
        self._server = Server(self._address)
        self._name = name
        self._clock = clock
        self._sink = sink
        self._registered: set[str] = set()

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return CLUSTER_CAPABILITIES if self._address.is_cluster else CAPABILITIES

    async def publish(self, queue: str, messages: Sequence[Message], *, delay: timedelta = NOW) -> Sequence[str]:
        check_names(queue=queue)
        if not messages:
            return ()
        keys = QueueKeys(queue)
        entries = [self._entry(message, payload=self._payload(queue)) for message in messages]
        durability = self._address.durability
        async with self._server.shared_wire(queue) as wire:
            for fields in entries:
                if why := too_large(fields, largest=self._server.largest):
                    raise BrokerError(f"redis: {why}")
            if delay > NOW:
                ids = await add_later(wire, keys, entries, delay=delay, durability=durability)
            else:
                ids = await add(wire, keys, entries, durability=durability)
        await self._register(queue)
        return ids

    async def subscribe(self, queue: str, *, group: str, options: Options) -> Subscription:
        check_names(queue=queue, group=group)
        dlq, outcomes = self._dlq(queue, options.dlq), named(self.capabilities.outcomes, queue)
        if options.output is not None:
            self._check_beside("output", options.output, queue=queue)
        keys = QueueKeys(queue).group(group)
        async with self._server.wire(queue) as wire:
            joined = await join(wire, keys)
        await self._register(queue, *([dlq] if options.dlq.enabled else []))
        setting = Setting(
            options=options,
            clock=self._clock,
            sink=self._sink,
            broker=self._name,
            incarnation=joined.incarnation,
            dlq=dlq,
            outcomes=outcomes,
            payload=self._payload(queue),
            trims=joined.created if options.trim is None else options.trim == "acked",
            largest=self._server.largest,
            slot=self._slot(queue),
        )
        return RedisSubscription(self._server, keys, setting=setting)

    def dead_letters(self, queue: str, *, place: DeadLetterPlace | None = None) -> NativeDeadLetters:
        check_names(queue=queue)
        name = self._dlq(queue, place or DeadLetterPlace())
        return RedisDeadLetters(self._server, name=name, queue=queue, broker=self._name)

    def answers(self) -> Answers:
        return RedisAnswers(self._address)

    async def send_back(self, items: Sequence[SendBack]) -> Sequence[str]:
        for item in items:
            check_names(queue=item.queue, group=item.group)
        ids: dict[int, str] = {}
        for queue in dict.fromkeys(item.queue for item in items):
            places = [place for place, item in enumerate(items) if item.queue == queue]
            async with self._server.shared_wire(queue) as wire:
                chosen = [items[place] for place in places]
                sent = await send_back(wire, chosen, payload=self._address.payload, largest=self._server.largest)
                await confirm(wire, self._address.durability)
            ids.update(zip(places, sent, strict=True))
            await self._register(queue)
        return [ids[place] for place in range(len(items))]

    async def original(self, queue: str, message_id: str) -> Message | None:
        if not is_entry_id(message_id):
            return None
        async with self._server.wire(queue) as wire:
            found = await wire.call("XRANGE", queue, message_id, message_id)
        return read_entry(*found[0], queue=queue, payload=self._payload(queue)) if found else None

    async def queues(self) -> Sequence[tuple[str, str]]:
        return await list_queues(self._server, self.capabilities)

    async def depth(self, queue: str, *, group: str) -> Depth:
        keys = QueueKeys(queue).group(group)
        async with self._server.wire(queue) as wire:
            return await measure(wire, keys, dlq=named(self.capabilities.dlq, queue))

    async def pause(self, queue: str, *, group: str, why: str | None) -> None:
        async with self._server.wire(queue) as wire:
            await pause(wire, QueueKeys(queue).group(group), why=why)

    async def free(self, queue: str, *, group: str) -> int:
        async with self._server.wire(queue) as wire:
            return await free(wire, QueueKeys(queue).group(group))

    async def alive(self, queue: str, *, group: str) -> Sequence[Alive]:
        async with self._server.wire(queue) as wire:
            return await workers(wire, QueueKeys(queue).group(group))

    async def diagnose(self) -> Sequence[Finding]:
        return await examine(self._server, sorted({queue for queue, _ in await self.queues()}))

    async def aclose(self) -> None:
        await self._server.aclose()

    def _entry(self, message: Message, *, payload: bytes) -> list[bytes]:
        clean = message._replace(headers=without_reserved(message.headers)) if message.headers else message
        return write_entry(clean, payload=payload)

    def _payload(self, queue: str) -> bytes:
        """What the payload is called in this queue: what we tell each other is called the same by everyone."""
        ours = queue_of(self.capabilities.outcomes, queue) is not None
        return OWN_PAYLOAD if ours else self._address.payload

    def _slot(self, queue: str) -> str:
        return tag_of(queue) if self._address.is_cluster else ""

    def _dlq(self, queue: str, place: DeadLetterPlace) -> str:
        dlq = place.dlq_of(queue, default=self.capabilities.dlq)
        self._check_beside("dlq.name", dlq, queue=queue)
        return dlq

    def _check_beside(self, what: str, name: str, *, queue: str) -> None:
        """Raise `ConfigError` if a stream of this name could not be written to in one step with the queue."""
        check_names(queue=name)
        mistake = slot_mistake(what, name, slot=self._slot(queue))
        if mistake:
            raise ConfigError(mistake)

    async def _register(self, *queues: str) -> None:
        if not self._registered.issuperset(queues) and await register(self._server, *queues):
            self._registered.update(queues)
