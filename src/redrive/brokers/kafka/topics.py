"""The topics of a cluster: which there are, and how those that we begin are set."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import Any, Final, TypeVar

from confluent_kafka import (
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from redrive.brokers.kafka import codes, lane
from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.dlq_topic import LARGEST, ROOM, DlqTopic
from redrive.brokers.kafka.errors import code_of, translate
from redrive.brokers.kafka.insisting import NEWS, ask, insist
from redrive.brokers.kafka.names import ALIVE, ALWAYS_THERE, LEDGER, is_private, lane_of
from redrive.brokers.kafka.record import Place
from redrive.core.errors import BrokerUnavailable, QueueNotFound
from redrive.core.place import DLQ, OUTCOMES, queue_of

T = TypeVar("T")

PATIENCE: Final = 10.0  # seconds for an answer of the cluster
REPLICATION: Final = 3
_ANSWER: Final = 3.0  # seconds for one that another broker could give as well
_MUCH_TIME: Final = 300.0
_KNOWN_FOR: Final = 30.0  # seconds
_MONTH: Final = 30 * 24 * 3600 * 1000
_SHARDS: Final = 8


class Topics:
    """The cluster as its administrator sees it. Safe for many threads; every call blocks."""

    def __init__(self, address: Address, *, dlq: DlqTopic) -> None:
        self.dlq = dlq
        self._address = address
        self._lock = Lock()
        self._known: dict[str, tuple[int, float]] = {}
        self._client: AdminClient | None = None
        self._trouble: KafkaError | None = None

    @property
    def admin(self) -> AdminClient:
        """The client. Raises `ConfigError` for settings that it does not know."""
        with self._lock:
            if self._client is None:
                settings: dict[str, Any] = {**self._address.of_all(), "error_cb": self._hear}
                self._client = ask(lambda: AdminClient(settings))
            return self._client

    def all(self) -> Mapping[str, int]:
        """Every topic, with how many partitions it has."""
        found = self._metadata()
        return {name: len(topic.partitions) for name, topic in found.topics.items()}

    def brokers(self) -> int:
        """How many brokers the cluster has."""
        return len(self._metadata(ALWAYS_THERE).brokers)

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has. Raises `QueueNotFound`."""
        count, until = self._known.get(topic, (0, 0.0))
        if time.monotonic() > until:
            found = self._metadata(topic).topics[topic]
            if found.error is not None or not found.partitions:
                self._known.pop(topic, None)
                raise QueueNotFound(f"kafka: no topic {topic!r}")
            count = len(found.partitions)
            self._known[topic] = (count, time.monotonic() + _KNOWN_FOR)
        return count

    def places(self, topic: str) -> list[Place]:
        """Every partition of a topic. Raises `QueueNotFound`."""
        return [(topic, number) for number in range(self.partitions(topic))]

    def exists(self, topic: str) -> bool:
        """Whether the cluster has this topic."""
        try:
            return self.partitions(topic) > 0
        except QueueNotFound:
            return False

    def ensure(self, topic: str) -> int:
        """Begin a topic if it is not there; return how many partitions it has."""
        count, until = self._known.get(topic, (0, 0.0))
        if time.monotonic() <= until:
            return count
        with suppress(QueueNotFound):
            return self.partitions(topic)
        queue = queue_of(DLQ, topic)
        if queue:
            self.ensure_dlq(topic, queue=queue)
        else:
            self._begin(topic, largest=self._room_for(topic.partition("..")[0]) if is_private(topic) else 0)
        return self._appeared(topic)

    def ensure_dlq(self, topic: str, *, queue: str) -> None:
        """Begin a DLQ, under whatever name, with room for the largest letter of its queue."""
        if not self.exists(topic):
            self._begin(topic, largest=self._largest_of(queue), dlq=True)
            self._appeared(topic)

    def ensure_lane(self, queue: str, group: str) -> int:
        """Begin the lane of a group."""
        name = lane_of(queue, group)
        if not self.exists(name):
            self._begin(name, largest=self._room_for(queue), shards=min(self.ensure(queue), _SHARDS))
        return self._appeared(name)

    def identity(self, topic: str) -> str:
        """The id that Kafka gave to this life of a topic that is there."""
        wanted = TopicCollection([topic])
        return self._found(
            lambda: str(self.admin.describe_topics(wanted, request_timeout=_ANSWER)[topic].result().topic_id)
        )

    def ask_identity(self, topic: str, then: Callable[[str], object]) -> None:
        """The same, told to `then` by a thread of the client's, if the cluster answers. Does not block."""

        def told(future: Future[Any]) -> None:
            if future.exception() is None:
                then(str(future.result().topic_id))

        futures = ask(lambda: self.admin.describe_topics(TopicCollection([topic]), request_timeout=PATIENCE))
        futures[topic].add_done_callback(told)

    def trim(self, low: Mapping[Place, int]) -> None:
        """Delete what lies below these offsets. The client does not survive a timeout here: it has much time."""
        wanted = [TopicPartition(*place, offset) for place, offset in low.items() if offset > 0]
        if wanted:
            for future in ask(lambda: self.admin.delete_records(wanted, request_timeout=_MUCH_TIME)).values():
                result_of(future)

    def settings(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """The settings of topics that are there."""
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]

        def look() -> dict[str, dict[str, str]]:
            futures = self.admin.describe_configs(resources, request_timeout=_ANSWER) if resources else {}
            return {
                resource.name: {name: entry.value for name, entry in future.result().items()}
                for resource, future in futures.items()
            }

        return self._found(look)

    def described(self) -> Mapping[str, Any]:
        """Every topic, with its partitions and their copies."""
        found: Mapping[str, Any] = self._metadata().topics
        return found

    def broker_settings(self) -> dict[str, str]:
        """The settings of one of the brokers."""
        broker = min(self._metadata(ALWAYS_THERE).brokers)
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        (future,) = ask(lambda: self.admin.describe_configs([resource], request_timeout=PATIENCE)).values()
        return {name: entry.value for name, entry in result_of(future).items()}

    def _metadata(self, topic: str | None = None) -> Any:
        """What the cluster tells of itself. If it tells nothing, the client knows why: no way, no trust, no user."""
        admin, self._trouble = self.admin, None
        try:
            return admin.list_topics(timeout=PATIENCE) if topic is None else admin.list_topics(topic, timeout=PATIENCE)
        except KafkaException as error:
            admin.poll(0)  # what it has to say is heard here
            raise translate(error if self._trouble is None else KafkaException(self._trouble)) from error
        finally:
            admin.poll(0)

    def _found(self, look: Callable[[], T]) -> T:
        """The answer about topics that are there. The client asks one broker only, which may be gone by now.

        It does not look for another one by itself.
        """
        ends = time.monotonic() + PATIENCE
        while True:
            try:
                return insist(look, patience=NEWS)
            except BrokerUnavailable:
                if time.monotonic() > ends:
                    raise
                self._metadata(ALWAYS_THERE)

    def _hear(self, error: KafkaError) -> None:
        if error.code() != codes.ALL_BROKERS_DOWN:
            self._trouble = error

    def _begin(self, topic: str, *, largest: int, dlq: bool = False, shards: int = 1) -> None:
        count, settings = self._shape(topic, largest=largest, dlq=dlq, shards=shards)
        own = self.dlq.replication if dlq else None
        if dlq or is_private(topic) or queue_of(OUTCOMES, topic):
            replication = own or self._address.replication or min(REPLICATION, max(self.brokers(), 1))
        else:
            replication = self._address.replication or -1
        settings |= safe_with(replication)
        new = NewTopic(topic, num_partitions=count, replication_factor=replication, config=settings)
        future = ask(lambda: self.admin.create_topics([new], request_timeout=PATIENCE))[topic]
        try:
            future.result()
        except KafkaException as error:
            if code_of(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise translate(error) from error

    def _shape(self, topic: str, *, largest: int, dlq: bool, shards: int) -> tuple[int, dict[str, str]]:
        size = {"max.message.bytes": f"{largest}"} if largest else {}
        if topic == ALIVE:
            return 1, {"retention.ms": "3600000", "segment.ms": "600000"}
        if topic == LEDGER or topic.endswith(".book"):
            compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.ms": "3600000"}
            return 1, compact | size
        if is_private(topic):
            return lane.COUNT * shards, {"retention.ms": "-1", "retention.bytes": "-1"} | size
        if dlq:
            return self.dlq.partitions, self.dlq.settings(largest)
        if queue_of(OUTCOMES, topic):
            return 1, {"retention.ms": f"{_MONTH}", "retention.bytes": "-1"}
        return self._address.partitions or -1, {}

    def _room_for(self, queue: str) -> int:
        """What a copy of the largest message of a queue may need, with what is noted of it."""
        return max(LARGEST, self._largest_of(queue) + ROOM)

    def _largest_of(self, queue: str) -> int:
        """Bytes of the largest message that a queue takes; 0 if there is no such queue."""
        if not self.exists(queue):
            return 0
        return int(self.settings([queue])[queue].get("max.message.bytes", "0"))

    def _appeared(self, topic: str) -> int:
        """Wait until the cluster knows of a topic that was begun."""
        ends = time.monotonic() + PATIENCE
        while True:
            with suppress(QueueNotFound):
                return self.partitions(topic)
            if time.monotonic() > ends:
                raise BrokerUnavailable(f"kafka: {topic!r} was begun and does not appear")
            time.sleep(0.01)


def safe_with(copies: int) -> dict[str, str]:
    """With three copies or more, what is acknowledged is in two of them, and writing goes on without one broker."""
    return {"min.insync.replicas": "2"} if copies >= REPLICATION else {}


def result_of(future: Any) -> Any:
    """The answer of the cluster, with our exceptions."""
    return ask(future.result)
