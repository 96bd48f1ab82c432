"""Three Kafka brokers that are their own controllers. Each may be killed and started again by its number."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.servers.kafka import HURRIED, KafkaServer, cluster_id
from tests.servers.ports import free_port
from tests.servers.server import until

NUMBERS: Final = (1, 2, 3)
GROUPS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
"""Each has one partition here: who leads it coordinates all groups, or all transactions."""

PATIENCE: Final = 180.0  # seconds, for virtual machines that share few processors
SETTINGS: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    # A broker that was killed is missed soon, and not let in again before its last session is over.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


class KafkaNode(KafkaServer):
    """One broker of a cluster. Raises `Unavailable`."""

    heap = "256m"

    def __init__(self, folder: Path, *, number: int, voters: Mapping[int, int], cluster: str) -> None:
        self.number = number
        self._voters = voters
        self._cluster = cluster
        super().__init__(folder, controller=voters[number])

    def defaults(self) -> dict[str, str]:
        given = super().defaults()
        del given["controller.quorum.bootstrap.servers"]
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in self._voters.items())
        return given | SETTINGS | {"node.id": f"{self.number}", "controller.quorum.voters": voters}

    def terms(self) -> Sequence[str]:
        return ("-t", self._cluster)

    def is_ready(self) -> bool:
        """Whether it answers, and the cluster counts it among its brokers."""
        found = _told(self.address)
        return found is not None and self.number in found.brokers

    @property
    def is_running(self) -> bool:
        return not self._has_ended()

    def quorum(self) -> tuple[int, int]:
        """What it knows of the controllers: the epoch, and who leads in it (-1 while nobody does)."""
        state = json.loads((self.folder / "data" / "__cluster_metadata-0" / "quorum-state").read_text())
        return state["leaderEpoch"], state["leaderId"]


class KafkaCluster:
    """Started and stopped as one; its brokers may be struck one by one. Raises `Unavailable`.

    Every call returns when its effect is there. May be called from any thread, by one at a time.
    """

    def __init__(self, folder: Path) -> None:
        voters, cluster = {number: free_port() for number in NUMBERS}, cluster_id()
        self.nodes = {
            number: KafkaNode(folder / f"broker-{number}", number=number, voters=voters, cluster=cluster)
            for number in NUMBERS
        }
        # A server dies with the thread that started it: this one lives as long as the cluster.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="kafka-cluster")
        self._running = ExitStack()

    @property
    def address(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    @property
    def url(self) -> str:
        """Where a client finds it. Tests have less patience than production."""
        return f"kafka://{self.address}?{HURRIED}"

    # ------------------------------------------------------------------------------------------- who does what

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """Which broker leads a partition, as soon as one does."""
        return self._wait_for(lambda: self._leader_of(topic, partition), what=f"a leader of {topic}-{partition}")

    def controller(self) -> int:
        """Which broker leads the controllers, as soon as one does that is running."""
        return self._wait_for(self._controller, what="a controller")

    def wait_until_whole(self) -> None:
        """Wait until all brokers are there, and every copy of every partition is in step with its leader."""
        until(self._is_whole, what="every copy in step", patience=PATIENCE)

    # ------------------------------------------------------------------------------------------------ striking

    def kill(self, *numbers: int) -> None:
        """Let them die at once."""
        for number in numbers:
            self.nodes[number].kill()

    def start(self, *numbers: int) -> None:
        """Start them (again), all at once."""
        nodes = [self.nodes[number] for number in numbers]
        with ThreadPoolExecutor(len(nodes)) as formatters:
            list(formatters.map(KafkaNode.format, nodes))
        for each in [self._starter.submit(node.launch) for node in nodes]:
            each.result()
        for node in nodes:
            node.wait_until_ready()

    def __enter__(self) -> Self:
        with ExitStack() as running:
            running.callback(self._starter.shutdown)
            for node in self.nodes.values():
                running.callback(node.kill)  # they would wait for each other to take leave
            self.start(*NUMBERS)
            self._running = running.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    # ------------------------------------------------------------------------------------------------- looking

    def _wait_for(self, look: Callable[[], int | None], *, what: str) -> int:
        found: list[int] = []

        def is_found() -> bool:
            number = look()
            found.extend([] if number is None else [number])
            return bool(found)

        until(is_found, what=what, patience=PATIENCE)
        return found[0]

    def _leader_of(self, topic: str, partition: int) -> int | None:
        told = _told(self.address)
        partitions = told.topics[topic].partitions if told is not None and topic in told.topics else {}
        number = partitions[partition].leader if partition in partitions else -1
        return number if number in self.nodes and self.nodes[number].is_running else None

    def _controller(self) -> int | None:
        _, number = max(node.quorum() for node in self.nodes.values() if node.is_running)
        return number if number in self.nodes and self.nodes[number].is_running else None

    def _is_whole(self) -> bool:
        told = _told(self.address)
        return (
            told is not None
            and told.brokers.keys() == self.nodes.keys()
            and all(
                len(partition.isrs) == len(partition.replicas)
                for topic in told.topics.values()
                for partition in topic.partitions.values()
            )
        )


def _told(address: str) -> Any:
    """What brokers tell of their cluster; None if they do not."""
    try:
        return AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=1)
    except KafkaException:
        return None
