"""A transactional producer: records into any topics and offsets of a group, all or none."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from redrive.brokers.kafka import codes
from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.errors import code_of, error_of, translate
from redrive.brokers.kafka.names import ALWAYS_THERE
from redrive.brokers.kafka.promises import Promises
from redrive.brokers.kafka.record import Place, Record, Settings
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.message import Headers

_new: Final = tuple.__new__  # at a third of the cost of calling the class

PATIENCE: Final = 20.0  # seconds for one step of a transaction
OFFSETS_PATIENCE: Final = 8.0  # seconds for the step that the client may never end
_GRACE: Final = 2.0  # seconds after which it has not kept to its time
_OF_THE_TRANSACTION: Final = frozenset(
    {
        codes.PURGE_QUEUE,
        codes.PURGE_INFLIGHT,
        codes.STATE,
        codes.FENCED,
        codes.MSG_TIMED_OUT,
        codes.TRANSPORT,
        codes.TIMED_OUT,
    }
)
"""Why a record was not written that is no fault of the record."""


class Refused(BrokerError):
    """The broker does not take one of the records; nothing was written."""


class Unsure(BrokerUnavailable):
    """Whether the transaction was committed is not known; it is decided before the next one of this producer begins."""


class Stuck(BrokerUnavailable):
    """The client does not come back from a call; nothing was written, and this producer is of no use any more."""


class Placed(NamedTuple):
    """Where a record was written."""

    topic: str
    partition: int
    offset: int

    @property
    def id(self) -> str:
        return f"{self.topic}-{self.partition}-{self.offset}"


class Offsets(NamedTuple):
    """What a group commits along: per partition an offset and its metadata; `member` fences who has left the group."""

    commits: Mapping[Place, tuple[int, str]]
    member: Any


Then = Callable[[Sequence[Placed]], Sequence[Record]]


class Transactions:
    """One producer with an identity: whoever takes the same one later fences it. Safe for threads, one at a time."""

    def __init__(self, address: Address, identity: str, *, promises: Promises, timeout: float = 60.0) -> None:
        self._settings = address.of_transactions(identity, timeout=timeout)
        self._promises = promises
        self._lock = RLock()
        self._producer: Producer | None = None

    def open(self) -> None:
        """Take the identity, unless we have it: what its former owner had under way is ended, one way or the other."""
        with self._lock:
            if self._producer is not None:
                return
            try:
                producer = connected(self._settings)
                _insist(lambda: producer.init_transactions(PATIENCE))
            except KafkaException as error:
                raise translate(error) from error
            self._producer = producer

    def drop(self) -> None:
        """Let go of the identity; the next transaction takes it anew."""
        with self._lock:
            producer, self._producer = self._producer, None
            if producer is not None:
                producer.purge()
                with suppress(KafkaException):  # fatal ones are why it is dropped
                    hear(lambda: producer.flush(0))

    def carry_out(
        self, records: Sequence[Record], *, offsets: Sequence[Offsets] = (), then: Then | None = None
    ) -> Sequence[Placed]:
        """Write all or none. `then` gives more records, once it is known where the first ones are.

        Raises `Refused`, `Unsure`, and `BrokerUnavailable` if nothing was done.
        """
        with self._lock:
            self.open()
            producer = self._producer
            assert producer is not None  # noqa: S101 - open has made it
            try:
                producer.begin_transaction()
                placed = list(_produce(producer, records))
                if then is not None:
                    placed += _produce(producer, then(placed))
                for each in offsets:
                    _send_offsets(producer, each)
            except Refused:
                self._abort(producer)
                self.drop()  # what it is given next would be thrown away with what it had
                raise
            except Stuck:
                self.drop()  # whoever takes the identity next ends the transaction
                raise
            except KafkaException as error:
                self._abort(producer)
                raise translate(error) from error
            self._commit(producer)
        self._promises.made(placed)
        return placed

    def _commit(self, producer: Producer) -> None:
        try:
            _insist(lambda: producer.commit_transaction(PATIENCE))
        except KafkaException as error:
            found = error_of(error)
            if found is not None and found.txn_requires_abort():
                self._abort(producer)
                raise translate(error) from error
            self.drop()
            raise Unsure(f"kafka: no answer to a commit ({error})") from error

    def _abort(self, producer: Producer) -> None:
        try:
            _insist(lambda: producer.abort_transaction(PATIENCE))
        except KafkaException:
            self.drop()


def connected(settings: Settings) -> Producer:
    """A producer with a connection: without one, its first request waits for half a second or more."""
    producer = Producer(settings)
    producer.list_topics(ALWAYS_THERE, timeout=PATIENCE)
    return producer


def _insist(call: Callable[[], object]) -> None:
    """Repeat a step that says it may be repeated."""
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            call()
        except KafkaException as error:
            found = error_of(error)
            if found is None or not found.retriable() or time.monotonic() > ends:
                raise
            time.sleep(0.05)
        else:
            return


def _send_offsets(producer: Producer, offsets: Offsets) -> None:
    wanted = [
        TopicPartition(topic, number, offset, metadata)
        for (topic, number), (offset, metadata) in offsets.commits.items()
    ]
    _in_time(lambda: _insist(lambda: producer.send_offsets_to_transaction(wanted, offsets.member, OFFSETS_PATIENCE)))


def _in_time(call: Callable[[], None]) -> None:
    """Make a call that may never return, whatever timeout it is given. Raises `Stuck`.

    librdkafka 2.16 waits for ever for the coordinator of a group, if the broker that it was has once been missing from
    the cluster (librdkafka#5456, #5511): a cluster of one that is restarted is enough.
    """
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - for whoever waits
            ended.put(error)
        else:
            ended.put(None)

    Thread(target=run, daemon=True, name="redrive-offsets").start()
    try:
        error = ended.get(timeout=OFFSETS_PATIENCE + _GRACE)
    except Empty:
        raise Stuck("kafka: the client does not commit offsets any more; it is begun anew") from None
    if error is not None:
        raise error


def _produce(producer: Producer, records: Sequence[Record]) -> Sequence[Placed]:
    """Write, and wait for where. Raises `Refused`."""
    placed: dict[int, Placed] = {}
    failed: dict[int, KafkaError] = {}

    def told(index: int, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            failed[index] = error
        else:
            placed[index] = _new(Placed, (message.topic(), message.partition(), message.offset()))

    for index, record in enumerate(records):
        write(producer, record, told=partial(told, index))
    ends = time.monotonic() + PATIENCE
    while len(placed) + len(failed) < len(records):
        hear(lambda: producer.flush(0.5))
        if time.monotonic() > ends:
            raise KafkaException(KafkaError(codes.TIMED_OUT, "records were not taken in time"))
    own = [each for each in failed.values() if each.code() not in _OF_THE_TRANSACTION and not each.retriable()]
    for error in own:  # records that travelled together are refused together
        raise Refused(f"kafka: {error.name()}: {error.str()}")
    for error in failed.values():
        raise KafkaException(error)
    return [placed[index] for index in range(len(records))]


def hear(client: Callable[[], object]) -> None:
    """Let the client tell what became of records. Raises its fatal error, if it has one."""
    try:
        client()
    except SystemError as error:  # it tells of records while that one is on its way already
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise


def write(producer: Producer, record: Record, *, told: Any) -> None:
    """Hand a record to the client. Raises `Refused` for what the client does not take."""
    topic, value, headers, key, partition, timestamp = record
    checked = _checked(headers) if headers else None
    while True:
        try:
            producer.produce(topic, value, key, partition, on_delivery=told, timestamp=timestamp, headers=checked)
        except BufferError:
            hear(lambda: producer.poll(0.1))
        except KafkaException as error:
            if code_of(error) in _OF_THE_TRANSACTION:
                raise
            raise Refused(f"kafka: {error.args[0].str()}") from error
        except (TypeError, ValueError) as error:
            raise Refused(f"kafka: {type(error).__name__}: {error}") from error
        else:
            return


def _checked(headers: Headers) -> list[Any]:
    """Headers as the client takes them. What is not text and bytes it would not refuse, but crash on: `Refused`."""
    try:
        names, values = zip(*headers, strict=True)
        if "".join(names).isascii() and {*map(type, values)} == {bytes}:
            return [*headers]
        return [
            (name.encode().decode(), value if value.__class__ is bytes else bytes(memoryview(value)))
            for name, value in headers
        ]
    except (AttributeError, TypeError, ValueError) as error:
        raise Refused(f"kafka: a header is not text and bytes: {error}") from error
