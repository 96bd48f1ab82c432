"""A plain producer: single messages, each durable when its sender is told so."""

import asyncio
from concurrent.futures import Future
from threading import Event, Lock, Thread
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.errors import translate
from redrive.brokers.kafka.promises import Promises
from redrive.brokers.kafka.record import Record
from redrive.brokers.kafka.transactions import Placed, connected, write

_TICK: Final = 0.05


class Outbox:
    """Sends records from any thread or event loop; one thread of its own hears how it went."""

    def __init__(self, address: Address, *, promises: Promises) -> None:
        self._address = address
        self._promises = promises
        self._lock = Lock()
        self._producer: Producer | None = None
        self._thread: Thread | None = None
        self._closing = Event()

    def open(self) -> None:
        """Connect, unless that is done. Blocks; raises what `translate` gives."""
        self._opened()

    async def send(self, record: Record) -> Placed:
        """Write one record; the outbox is open. Raises `Refused` and what `translate` gives."""
        return await asyncio.wrap_future(self._begin(record))

    def close(self) -> None:
        """Wait for what is under way."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        if self._producer is not None:
            self._producer.flush(_TICK)

    def _begin(self, record: Record) -> Future[Placed]:
        answer: Future[Placed] = Future()
        answer.set_running_or_notify_cancel()  # a sender that no longer waits does not unsend it

        def told(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                answer.set_exception(translate(KafkaException(error)))
            else:
                placed = Placed(message.topic(), message.partition(), message.offset())
                self._promises.made([placed])
                answer.set_result(placed)

        write(self._opened(), record, told=told)
        return answer

    def _opened(self) -> Producer:
        with self._lock:
            if self._producer is None:
                try:
                    self._producer = connected(self._address.of_producer())
                except KafkaException as error:
                    raise translate(error) from error
                self._thread = Thread(target=self._listen, args=(self._producer,), daemon=True, name="redrive-outbox")
                self._thread.start()
            return self._producer

    def _listen(self, producer: Producer) -> None:
        while not self._closing.is_set() or len(producer):
            producer.poll(_TICK)
