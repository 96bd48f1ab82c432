"""A plain producer: single messages, each durable when its sender is told so."""

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from redrive.brokers.kafka import codes
from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.errors import error_of, translate
from redrive.brokers.kafka.promises import Promises
from redrive.brokers.kafka.record import Record
from redrive.brokers.kafka.transactions import Placed, Refused, connected, hear, write
from redrive.core.errors import BrokerUnavailable

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
        if (producer := self._producer) is not None:
            with suppress(KafkaException):
                hear(lambda: producer.flush(_TICK))

    def _begin(self, record: Record) -> Future[Placed]:
        answer: Future[Placed] = Future()
        answer.set_running_or_notify_cancel()  # a sender that no longer waits does not unsend it
        producer = self._opened()

        def told(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                broken = self._drop_if(producer, error)
                answer.set_exception(_broken_off() if broken else translate(KafkaException(error)))
            else:
                placed = Placed(message.topic(), message.partition(), message.offset())
                self._promises.made([placed])
                answer.set_result(placed)

        try:
            write(producer, record, told=told)
        except KafkaException as error:
            raise translate(error) from error
        except Refused as refused:
            why = error_of(refused.__cause__) if refused.__cause__ is not None else None
            if why is None or not self._drop_if(producer, why):
                raise
            raise _broken_off() from refused
        return answer

    def _drop_if(self, producer: Producer, error: KafkaError) -> bool:
        """Let go of a producer that can do nothing any more, so that the next one to send makes a new one."""
        is_fatal = error.fatal() or error.code() == codes.FATAL
        with self._lock:
            if is_fatal and self._producer is producer:
                self._producer = None
        return is_fatal

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
        while (not self._closing.is_set() and self._producer is producer) or len(producer):
            try:
                hear(lambda: producer.poll(_TICK))
            except KafkaException as error:  # its records are told of all the same
                self._drop_if(producer, error.args[0])


def _broken_off() -> BrokerUnavailable:
    return BrokerUnavailable("kafka: the client has broken off, and is begun anew")
