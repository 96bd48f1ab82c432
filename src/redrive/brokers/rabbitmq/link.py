"""The connection: ours to open, to watch and to open again.

The client's own reconnecting is not used: after a break nothing that was delivered can be settled any more, so whoever
held something must hear of it. Every call has an end: a server that does not answer is taken for one that is away.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypeVar

import aiormq
from aiormq.abc import AbstractChannel, AbstractConnection, DeliveredMessage
from aiormq.exceptions import (
    ChannelInvalidStateError,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)

from redrive.brokers.rabbitmq.address import Address
from redrive.brokers.rabbitmq.channels import is_open
from redrive.brokers.rabbitmq.endings import cancel, close, end_of, looked_at
from redrive.brokers.rabbitmq.errors import GONE, REFUSED, QueueFull, is_from_server, is_missing, translate
from redrive.brokers.rabbitmq.parcel import Parcel
from redrive.core.errors import BrokerError, BrokerUnavailable, QueueNotFound
from redrive.core.event import BrokerFaulted
from redrive.core.ports import Clock, EventSink

T = TypeVar("T")

logging.getLogger("aiormq").setLevel(logging.CRITICAL)  # what goes wrong is told to whoever asked

PATIENCE: Final = timedelta(seconds=15)
_AT_ONCE: Final = 200  # messages on their way to the server
_LOOK, _LOOKS = 0.005, 100
_UNUSABLE: Final = "the client has given up a channel that the server knows nothing of: what came on it must come again"


class Posting(NamedTuple):
    """A parcel and where it goes."""

    exchange: str
    routing_key: str
    parcel: Parcel


class Tag(NamedTuple):
    """A message that was delivered and is not settled."""

    channel: AbstractChannel
    number: int


def tag_of(delivered: DeliveredMessage) -> Tag:
    """What a message is settled by."""
    return Tag(delivered.channel, delivered.delivery_tag or 0)


def behind(got: DeliveredMessage) -> int:
    """How many were in the queue behind a message that was got."""
    return getattr(got.delivery, "message_count", None) or 0


class Link:
    """One connection of a process. Belongs to one event loop."""

    def __init__(self, address: Address, *, clock: Clock, sink: EventSink | None = None) -> None:
        self.address = address
        self.clock = clock
        self._sink = sink
        self._connection: AbstractConnection | None = None
        self._opening: asyncio.Task[AbstractConnection] | None = None
        self._publisher: AbstractChannel | None = None
        self._asker: AbstractChannel | None = None
        self._on_the_way: set[str | None] = set()  # ids of what is not confirmed yet
        self._arrived = asyncio.Event()  # set, and replaced, when some of it is
        self._one_opens, self._one_asks = asyncio.Lock(), asyncio.Lock()
        self.is_closed = False
        self.missing: Callable[[], None] = lambda: None  # called when something that was begun is not there

    async def connection(self) -> AbstractConnection:
        """The connection, opened if there is none. Raises `BrokerUnavailable`, or `BrokerError` if it is refused."""
        if self.is_closed:
            raise BrokerUnavailable("rabbitmq: this broker has been closed")
        if self._connection is not None and not _is_down(self._connection):
            return self._connection
        if self._connection is not None:
            self._forget("the connection has ended")
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(looked_at)
        opening = self._opening
        await asyncio.wait([opening])
        if opening.cancelled():
            raise BrokerUnavailable("rabbitmq: the connection has ended before it was open")
        return opening.result()

    async def _open(self) -> AbstractConnection:
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                connection = await aiormq.connect(self.address.url)
        except Exception as error:
            raise translate(error) from error
        finally:
            self._opening = None
        self._connection = connection
        return connection

    async def channel(self, *, confirms: bool = False) -> AbstractChannel:
        """A new channel."""
        connection = await self.connection()
        return await self.ask(connection.channel(publisher_confirms=confirms, on_return_raises=confirms))

    @asynccontextmanager
    async def for_a_moment(self) -> AsyncIterator[AbstractChannel]:
        """A channel for calls that the server may answer by closing it. What was got on it and not acked goes back."""
        channel = await self.channel()
        try:
            yield channel
        finally:
            if not channel.is_closed:
                with contextlib.suppress(BrokerError):
                    await self.ask(channel.close())

    async def ask(self, call: Awaitable[T]) -> T:
        """The answer to a call. A server that does not answer is away: its connection is given up.

        A call is never left in the middle, also if nobody waits for it any more: the client would close its channel.
        """
        asked = self._connection
        task = asyncio.ensure_future(call)
        task.add_done_callback(looked_at)
        await asyncio.wait([task], timeout=PATIENCE.total_seconds())
        if not task.done():
            if self._connection is asked:
                self.drop(f"no answer within {PATIENCE.total_seconds():.0f} s")
            raise BrokerUnavailable("rabbitmq: no answer from the server")
        try:
            return task.result()
        except asyncio.CancelledError:
            raise BrokerUnavailable("rabbitmq: the connection has ended") from None
        except Exception as error:
            if isinstance(error, ChannelInvalidStateError) and self._connection is asked:
                self.drop(_UNUSABLE)
            raise translate(error) from error

    async def heard(self, waiting: asyncio.Future[None], channel: AbstractChannel) -> None:
        """Wait for something that comes by a channel. Raises `BrokerUnavailable` if it does not, or cannot any more."""
        closing = channel.closing
        await asyncio.wait([waiting, closing], timeout=PATIENCE.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()  # it only looks on
        if not waiting.done():
            raise BrokerUnavailable("rabbitmq: what was waited for has not come")

    async def publish(self, postings: Sequence[Posting]) -> Sequence[BrokerError | None]:
        """Publish, and wait until the server has confirmed: for each, None or why it was refused.

        Raises `BrokerUnavailable` if it is not known of some whether they were written.
        """
        answers: list[BrokerError | None] = []
        for batch in _batches(postings):
            answers += await self._publish(batch)
        return answers

    async def publish_all(self, postings: Sequence[Posting]) -> None:
        """Publish; raise the first refusal."""
        for refused in await self.publish(postings):
            if refused is not None:
                raise refused

    async def _publish(self, postings: Sequence[Posting]) -> list[BrokerError | None]:
        found = await self._try(postings)
        if len(postings) > 1 and any(error is not None and is_from_server(error) for error in found):
            # One of them made the server close the channel, and nothing is known of those behind it.
            found = [
                (await self._try([each]))[0] if error is not None and not isinstance(error, REFUSED) else error
                for each, error in zip(postings, found, strict=True)
            ]
        answers: list[BrokerError | None] = []
        for posting, error in zip(postings, found, strict=True):
            ours = None if error is None else translate(error)
            if isinstance(error, DeliveryError) and not isinstance(error, PublishError):
                ours = QueueFull(posting.routing_key)
            if isinstance(error, PublishError) or (error is not None and is_missing(error)):
                self.missing()
            if ours is not None and (isinstance(ours, BrokerUnavailable) or not isinstance(ours, BrokerError)):
                raise ours
            answers.append(ours)
        return answers

    async def _try(self, postings: Sequence[Posting]) -> list[BaseException | None]:
        """How each of them ended. The client knows by its id what comes back: one of an id is on its way at a time."""
        ids = {posting.parcel.properties.message_id for posting in postings}
        while not self._on_the_way.isdisjoint(ids):
            await self._arrived.wait()
        self._on_the_way |= ids
        try:
            return await self._send_off(postings)
        finally:
            self._on_the_way -= ids
            self._arrived.set()
            self._arrived = asyncio.Event()

    async def _send_off(self, postings: Sequence[Posting]) -> list[BaseException | None]:
        channel = await self._publishing()
        calls = [
            channel.basic_publish(  # type: ignore[call-arg] # its port does not know `wait`, it does
                parcel.body,
                exchange=exchange,
                routing_key=routing_key,
                properties=parcel.properties,
                mandatory=True,
                wait=False,
            )
            for exchange, routing_key, parcel in postings
        ]
        tasks = [asyncio.ensure_future(call) for call in calls]
        try:
            _, late = await asyncio.wait(tasks, timeout=PATIENCE.total_seconds())
        except asyncio.CancelledError:
            cancel(tasks)
            raise
        if late:
            cancel(late)
            async with self.for_a_moment():
                pass  # the server is there, or this raises: it is the queue that does not answer
        return [
            _unconfirmed(posting) if task in late else end_of(task)
            for task, posting in zip(tasks, postings, strict=True)
        ]

    async def _publishing(self) -> AbstractChannel:
        if self._publisher is None or self._publisher.is_closed or _is_down(self._publisher.connection):
            async with self._one_opens:
                if self._publisher is None or self._publisher.is_closed or _is_down(self._publisher.connection):
                    self._publisher = await self.channel(confirms=True)
        return self._publisher

    async def declare(self, name: str, *, arguments: Mapping[str, Any], needed: bool = False) -> None:
        """Begin a durable queue unless it is there.

        One that somebody has begun with other arguments is taken as it is, unless those are `needed`.
        """
        async with self._asking() as channel:
            try:
                await self.ask(channel.queue_declare(name, durable=True, arguments=dict(arguments)))
            except BrokerError as error:
                if needed or not isinstance(error.__cause__, ChannelPreconditionFailed):
                    raise

    async def count(self, name: str, *, consumers: bool = False) -> int | None:
        """How many messages of a queue are in nobody's hands, or how many consumers it has; None if it is not there."""
        async with self._asking() as channel:
            try:
                ok = await self.ask(channel.queue_declare(name, passive=True))
                if not ok.message_count and not ok.consumer_count:
                    # A server that cannot find it out in time says so too. Twice in a row is rare.
                    ok = await self.ask(channel.queue_declare(name, passive=True))
            except QueueNotFound:
                return None
        return (ok.consumer_count if consumers else ok.message_count) or 0

    async def back_in(self, name: str, number: int) -> None:
        """Wait until a queue has so many, what was given back among them, unless others are quicker to take it.

        The server counts what it has carried out; what it is about to put back comes later.
        """
        last = 0
        for _ in range(_LOOKS):
            found = await self.count(name) or 0
            if found >= number or found < last:
                return
            last = found
            await asyncio.sleep(_LOOK)

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[AbstractChannel]:
        """A channel for questions, one at a time. The server closes it when it does not like one."""
        async with self._one_asks:
            asker = self._asker
            if asker is None or asker.is_closed or _is_down(asker.connection):
                asker = self._asker = await self.channel()
            try:
                yield asker
            except Exception:
                self._asker = None
                raise

    async def ack(self, deliveries: Iterable[Tag]) -> None:
        """Take messages from their queues. Nobody answers that: if it does not arrive, they come again."""
        await self._send(deliveries, back=False)

    async def give_back(self, deliveries: Iterable[Tag]) -> None:
        """Put messages back into their queues. Nobody answers that: if it does not arrive, they are there anyway."""
        await self._send(deliveries, back=True)

    async def give_all_back(self, channel: AbstractChannel) -> None:
        """Put back what was got on a channel and not acked: before its end, which does so at a time of the server's."""
        if is_open(channel):
            with contextlib.suppress(*GONE):
                await channel.basic_nack(0, multiple=True, wait=False)

    async def put_back(self, deliveries: Mapping[str, Sequence[Tag]]) -> None:
        """Put messages back, by their queues; return when they can be counted there, if the server counts now."""
        before: dict[str, int] = {}
        for name in deliveries:
            with contextlib.suppress(BrokerError):
                before[name] = await self.count(name) or 0
        for name, tags in deliveries.items():
            await self.give_back(tags)
            if name in before:
                await self.back_in(name, before[name] + len(tags))

    async def _send(self, deliveries: Iterable[Tag], *, back: bool) -> None:
        """Without the client's own waiting: it waits for ever for a connection that has just ended."""
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                for channel, tag in deliveries:
                    if not is_open(channel):
                        continue
                    try:
                        await (channel.basic_nack if back else channel.basic_ack)(tag, wait=False)
                    except GONE:
                        if channel.connection is self._connection:
                            self.drop(_UNUSABLE)
                await asyncio.sleep(0)  # the client's writer comes first: it is on its way
        except TimeoutError:
            self.drop(f"nothing sent within {PATIENCE.total_seconds():.0f} s")

    async def get(self, channel: AbstractChannel, queue: str) -> DeliveredMessage | None:
        """The next message of a queue, in our hands until it is acked or its channel ends."""
        found = await self.ask(channel.basic_get(queue))
        return None if found.delivery_tag is None else found

    def tell(self, call: str, why: str, *, queue: str = "") -> None:
        """Say that something broke and is mended."""
        if self._sink is not None:
            self._sink.emit(BrokerFaulted(at=self.clock.now(), queue=queue, call=call, why=why))

    def drop(self, why: str) -> None:
        """Give a connection up, whatever its state: the next call opens another."""
        connection = self._connection
        if connection is None:
            return
        self._forget(why)
        asyncio.ensure_future(close(connection)).add_done_callback(looked_at)

    def _forget(self, why: str) -> None:
        self._connection = self._publisher = self._asker = None
        if not self.is_closed:
            self.tell("connection", why)

    async def aclose(self) -> None:
        """Close. Idempotent."""
        self.is_closed = True
        if self._opening is not None:
            self._opening.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            await close(connection)


def _batches(postings: Sequence[Posting]) -> Iterator[Sequence[Posting]]:
    """As many at a time as may be on their way, and none twice among them."""
    start, ids = 0, set[str | None]()
    for number, posting in enumerate(postings):
        name = posting.parcel.properties.message_id
        if number - start == _AT_ONCE or name in ids:
            yield postings[start:number]
            start, ids = number, set()
        ids.add(name)
    if start < len(postings):
        yield postings[start:]


def _is_down(connection: AbstractConnection) -> bool:
    return connection.is_closed or not connection.is_opened


def _unconfirmed(posting: Posting) -> BrokerError:
    """What is to be said of a message that only its queue does not confirm."""
    return BrokerError(
        f"rabbitmq: {posting.routing_key!r} has confirmed nothing within {PATIENCE.total_seconds():.0f} s, and the "
        "server is there: has this queue a leader?"
    )
