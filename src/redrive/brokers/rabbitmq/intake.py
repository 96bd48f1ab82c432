"""How messages come: by a consumer while a worker waits for some, with as much credit as it has free lanes."""

import asyncio
import contextlib
from collections import deque
from typing import Final
from uuid import uuid4

from aiormq.abc import AbstractChannel, DeliveredMessage

from redrive.brokers.rabbitmq.channels import is_open
from redrive.brokers.rabbitmq.errors import GONE, is_from_server, text_of
from redrive.brokers.rabbitmq.judging import Judge
from redrive.brokers.rabbitmq.link import tag_of
from redrive.brokers.rabbitmq.office import Office
from redrive.core.errors import BrokerError

_LINGER: Final = 1.0
"""Seconds for which a consumer stays that nobody waits for: a worker comes back sooner, or has no free lane.

What is given back comes again as something to be looked up, which is slow: a machine with much to do must not cause it.
"""


class Intake:
    """One worker's channel and consumer, and what has come and was not handed out yet. Belongs to one event loop."""

    def __init__(self, office: Office, source: str, judge: Judge) -> None:
        self._office = office
        self._link = office.link
        self.source = source
        self._judge = judge
        self.ready: deque[DeliveredMessage] = deque()
        self._doubtful: list[DeliveredMessage] = []
        self._judging: asyncio.Task[None] | None = None
        self._judged_now = 0  # of those, how many the judge has before him
        self.bell = asyncio.Event()
        self._channel: AbstractChannel | None = None
        self._one_at_a_time = asyncio.Lock()
        self.consumer: str | None = None
        self._replaced: str | None = None  # the consumer before, of which something may still be on its way
        self._credit = 0  # what the consumer may still be sent
        self._linger: asyncio.TimerHandle | None = None
        self.is_watched = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many have come and are in nobody's hands."""
        return sum(is_open(each.channel) for each in (*self.ready, *self._doubtful))

    async def channel(self) -> AbstractChannel:
        """The channel on which messages come, opened if there is none."""
        if self._channel is None or not is_open(self._channel):
            self._lose()
            channel = await self._link.channel()
            channel.on_consumer_cancel_callbacks.add(self._cancelled)
            channel.closing.add_done_callback(self._closed)
            self._channel = channel
        return self._channel

    async def want(self, limit: int) -> None:
        """Have a consumer with credit for so many more, or for half of them: another one costs three questions."""
        self._stay()
        on_the_way = self._credit + len(self.ready) + len(self._doubtful) + self._judged_now
        if self._is_consuming() and 2 * on_the_way >= limit:
            return
        async with self._one_at_a_time:
            self._replaced = self.consumer
            await self._stop(give_back=False)
            channel = await self.channel()
            self.consumer, self._credit = uuid4().hex, limit
            await self._link.ask(channel.basic_qos(prefetch_count=limit))
            await self._link.ask(channel.basic_consume(self.source, self._come, consumer_tag=self.consumer))

    async def get(self, limit: int) -> None:
        """Have what is there now, and no consumer."""
        async with self._one_at_a_time:
            await self._stop(give_back=False)
            channel = await self.channel()
            await self._judged()
            while len(self.ready) < limit:
                found = await self._link.get(channel, self.source)
                self._judge.has_come(found)
                if found is None:
                    return
                innocent = (await self._judge.judge([found]))[0] if self._judge.is_doubtful(found) else [found]
                self.ready.extend(innocent)

    async def stop(self) -> None:
        """Have no consumer, and give back what was not handed out."""
        async with self._one_at_a_time:
            await self._stop(give_back=True)

    async def rest(self) -> None:
        """Have nothing on its way, unless a worker waits for it: whoever counts would miss it."""
        if not self.is_watched:
            await self.stop()

    def left(self) -> None:
        """Nobody waits any more."""
        if self._linger is None and (self.ready or self._doubtful or self._is_consuming()):
            self._linger = asyncio.get_running_loop().call_later(_LINGER, self._nobody_came)

    def nothing_came(self) -> None:
        """A worker has waited for a while: what a consumer with credit is not sent is not there."""
        if self._is_consuming() and self._credit and not (self.ready or self._doubtful or self._judged_now):
            self._judge.has_come(None)

    def freed(self, consumer: str | None) -> None:
        """A message that came by this consumer is settled: the server may send it another one."""
        if consumer is not None and consumer == self.consumer:
            self._credit += 1
            if not self.is_watched:
                self.left()

    async def aclose(self, *, keep_channel: bool) -> None:
        """End; the channel stays while something that came on it is in hand."""
        with contextlib.suppress(BrokerError, *GONE):
            await self.stop()
        self.end()
        if self._channel is not None and not keep_channel and is_open(self._channel):
            with contextlib.suppress(BrokerError):
                await self._link.ask(self._channel.close())

    def end(self) -> None:
        """Leave nothing behind in the event loop."""
        self._stay()
        for task in (self._judging, self._ending):
            if task is not None:
                task.cancel()

    async def look_for_faults(self) -> None:
        """A consumer that the server knows nothing of is none; one that is just being begun is let be."""
        async with self._one_at_a_time:
            if self._is_consuming() and not await self._link.count(self.source, consumers=True):
                self._link.tell("consume", "the server has no such consumer any more", queue=self.source)
                await self._stop(give_back=False)
                self.bell.set()

    async def _come(self, delivered: DeliveredMessage) -> None:
        if delivered.consumer_tag == self.consumer:
            self._credit -= 1
        elif (stranger := delivered.consumer_tag) is not None and stranger != self._replaced:
            # Nobody knows that consumer any more. Left alone, it would be sent what it gives back, for ever.
            await self._link.ask(delivered.channel.basic_cancel(stranger))
            await self._give_back([delivered])
            return
        self._judge.has_come(delivered)
        if self._judge.is_doubtful(delivered):
            self._doubtful.append(delivered)
            if self._judging is None:
                self._judging = asyncio.create_task(self._judge_all())
        else:
            self.ready.append(delivered)
            self.bell.set()

    async def _judge_all(self) -> None:
        """Decide about what came again: more comes meanwhile, and is decided together."""
        try:
            while self._doubtful:
                await asyncio.sleep(0)
                batch, self._doubtful = self._doubtful, []
                consumer, self._judged_now = self.consumer, len(batch)
                try:
                    innocent, moved = await self._judge.judge(batch)
                except Exception as error:  # noqa: BLE001 - whatever it is, nothing is kept
                    self._link.tell("judge", text_of(error), queue=self.source)
                    await self._give_back(batch)
                    innocent, moved = [], len(batch)
                self._judged_now = 0
                if consumer == self.consumer:
                    self._credit += moved
                self.ready.extend(innocent)
                self.bell.set()
        finally:
            self._judging, self._judged_now = None, 0

    async def _judged(self) -> None:
        if self._judging is not None:
            await asyncio.wait([self._judging])

    async def _stop(self, *, give_back: bool) -> None:
        consumer, channel = self.consumer, self._channel
        if channel is None or not is_open(channel):
            self._lose()
            return
        if consumer is not None:
            await self._link.ask(channel.basic_cancel(consumer))  # what comes until then has come
        self.consumer = None
        if give_back:
            self._replaced = None
            await self._judged()
            batch = [*self.ready, *self._doubtful]
            self.ready.clear()
            self._doubtful.clear()
            if batch:
                await self._link.put_back({self.source: [tag_of(each) for each in batch]})

    async def _give_back(self, batch: list[DeliveredMessage]) -> None:
        """Back into the queue: nobody has begun with them."""
        await self._link.give_back([tag_of(each) for each in batch])

    def _nobody_came(self) -> None:
        self._linger = None
        if self.is_watched or (self._is_consuming() and not self._credit and not self.ready):
            return
        self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        with contextlib.suppress(BrokerError, *GONE):
            if not self.is_watched:
                await self.stop()

    def _stay(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None

    def _cancelled(self, _: object) -> None:
        self._link.tell(
            "consume", "the server has cancelled the consumer: is the queue still there?", queue=self.source
        )
        self.consumer = None
        self.bell.set()

    def _closed(self, closing: asyncio.Future[object]) -> None:
        """The server says why when it closes a channel by itself, as after its consumer timeout."""
        error = None if closing.cancelled() else closing.exception()
        if error is not None and is_from_server(error) and not self._link.is_closed:
            self._link.tell("consume", f"the server has closed the channel: {text_of(error)}", queue=self.source)
        self.bell.set()

    def _is_consuming(self) -> bool:
        return self.consumer is not None and self._channel is not None and is_open(self._channel)

    def _lose(self) -> None:
        """What came on a channel that has ended comes again, to whoever is next."""
        self.ready = deque(each for each in self.ready if is_open(each.channel))
        self._doubtful = [each for each in self._doubtful if is_open(each.channel)]
        self.consumer, self._credit = None, 0
