"""A stream of RabbitMQ as a log: everybody appends, everybody reads all of it, nothing is taken out."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp.commands import Basic

from redrive.brokers.rabbitmq.channels import is_open
from redrive.brokers.rabbitmq.errors import GONE
from redrive.brokers.rabbitmq.link import Link, Posting
from redrive.brokers.rabbitmq.parcel import Parcel
from redrive.core.errors import BrokerError, BrokerUnavailable

Record = dict[str, Any]

_CREDIT: Final = 1000
_OFFSET: Final = "x-stream-offset"
FOR_EVER: Final[Mapping[str, Any]] = {"x-queue-type": "stream"}


class Stream:
    """One stream, by name. `append` returns when the server has confirmed."""

    def __init__(self, link: Link, name: str, *, arguments: Mapping[str, Any] = FOR_EVER) -> None:
        self.name = name
        self._link = link
        self._arguments = arguments
        self._is_there = False

    async def ensure(self) -> None:
        """Begin the stream unless it is there."""
        if not self._is_there:
            await self._link.declare(self.name, arguments=self._arguments, needed=True)
            self._is_there = True

    async def append(self, record: Record, *, record_id: str = "") -> str:
        """Write one record; return its id."""
        record_id = record_id or uuid4().hex
        body = json.dumps(record, separators=(",", ":")).encode()
        parcel = Parcel(body, Basic.Properties(message_id=record_id, delivery_mode=2))
        await self._link.publish_all([Posting("", self.name, parcel)])
        return record_id

    async def read(self, *, since: datetime | None) -> list[Record]:
        """Everything since then, or all there is, up to now."""
        await self.ensure()
        records: list[Record] = []
        end: set[str] = set()
        seen: set[str] = set()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def take(delivered: DeliveredMessage) -> None:
            if done.done():
                return
            seen.add(delivered.header.properties.message_id or "")
            records.append(json.loads(delivered.body))
            if end & seen:
                done.set_result(None)
            else:
                await _credit(delivered)

        async with self._link.for_a_moment() as channel:
            await self._link.ask(channel.basic_qos(prefetch_count=_CREDIT))
            offset = "first" if since is None else since
            await self._link.ask(channel.basic_consume(self.name, take, arguments={_OFFSET: offset}))
            end.add(await self.append({}))
            if end & seen and not done.done():
                done.set_result(None)
            await self._link.heard(done, channel)
        return [record for record in records if record]


class Follower:
    """A stream that is read all the time, from its beginning. `hear` gets every record once, in order."""

    def __init__(self, stream: Stream, link: Link, hear: Callable[[Record], None]) -> None:
        self._stream = stream
        self._link = link
        self._hear = hear
        self._channel: AbstractChannel | None = None
        self._next = 0
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._one_opens = asyncio.Lock()

    async def open(self) -> None:
        """Read up to now, and go on reading."""
        if self._channel is None or not is_open(self._channel):
            await self.tell({})

    async def tell(self, record: Record) -> None:
        """Append a record; return when it was heard, and with it everything that was before it."""
        channel = await self._reading()
        record_id = uuid4().hex
        waiting = self._waiting[record_id] = asyncio.get_running_loop().create_future()
        try:
            await self._stream.append(record, record_id=record_id)
            await self._link.heard(waiting, channel)
        except BrokerUnavailable:
            self._lose(channel)
            raise
        finally:
            del self._waiting[record_id]

    async def _reading(self) -> AbstractChannel:
        async with self._one_opens:
            if self._channel is None or not is_open(self._channel):
                await self._stream.ensure()
                channel = await self._link.channel()
                await self._link.ask(channel.basic_qos(prefetch_count=_CREDIT))
                offset: Any = self._next or "first"
                await self._link.ask(channel.basic_consume(self._stream.name, self._take, arguments={_OFFSET: offset}))
                channel.on_consumer_cancel_callbacks.add(lambda _: self._lose(channel))
                self._channel = channel
            return self._channel

    async def aclose(self) -> None:
        """Stop reading."""
        channel, self._channel = self._channel, None
        if channel is not None and not channel.is_closed:
            with contextlib.suppress(BrokerError):
                await self._link.ask(channel.close())

    def _lose(self, channel: AbstractChannel) -> None:
        if self._channel is channel:
            self._channel = None

    async def _take(self, delivered: DeliveredMessage) -> None:
        offset = int(str((delivered.header.properties.headers or {}).get(_OFFSET, self._next)))
        if offset >= self._next:
            self._next = offset + 1
            record = json.loads(delivered.body)
            if record:
                self._hear(record)
        record_id = delivered.header.properties.message_id or ""
        waiting = self._waiting.get(record_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        await _credit(delivered)


async def _credit(delivered: DeliveredMessage) -> None:
    """Let the next ones come."""
    with contextlib.suppress(*GONE):
        await delivered.channel.basic_ack(delivered.delivery_tag or 0, wait=False)
