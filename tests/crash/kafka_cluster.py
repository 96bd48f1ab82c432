"""A cluster of three Kafka brokers under the crash harness: those on which most depends are killed, one at a time."""

from collections.abc import Callable
from threading import Lock
from typing import Final

from redrive.brokers.kafka.names import lane_of
from tests.crash import kafka
from tests.crash.adapter import Adapter
from tests.crash.kafka import SESSION, disturb, leaks_of
from tests.crash.plan import ORDERS
from tests.crash.scenario import GROUP
from tests.servers.kafka import VERSION
from tests.servers.kafka_cluster import GROUPS, TRANSACTIONS, KafkaCluster

HURRIED: Final = (
    f"session.timeout.ms={SESSION}&heartbeat.interval.ms=200&reconnect.backoff.ms=20&reconnect.backoff.max.ms=500"
    "&fetch.wait.max.ms=20"
)


def on_cluster(cluster: KafkaCluster, *, queue: str = ORDERS) -> Adapter:
    """The adapter on a cluster that nobody else uses. The leader of one queue is struck, and of what is beside it."""
    turn = Lock()
    url = f"kafka://{cluster.address}?partitions=4&{HURRIED}"

    def strike(find: Callable[[], int]) -> Callable[[], None]:
        return lambda: _kill(cluster, find, turn)

    return Adapter(
        url=url,
        version=f"Kafka {VERSION}, three brokers",
        module=kafka.__name__,
        points=kafka.POINTS,
        faults={
            "SIGKILL of the leader of a queue": strike(lambda: cluster.leader_of(queue)),
            "SIGKILL of the controller": strike(cluster.controller),
            "SIGKILL of the coordinator of transactions": strike(lambda: cluster.leader_of(TRANSACTIONS)),
            "SIGKILL of the coordinator of groups": strike(lambda: cluster.leader_of(GROUPS)),
            "SIGKILL of the leader of a lane": strike(lambda: cluster.leader_of(lane_of(queue, GROUP))),
            "forced rebalances": lambda: disturb(cluster.address),
        },
        leaks=lambda: leaks_of(url),
        comes_back=True,
    )


def _kill(cluster: KafkaCluster, find: Callable[[], int], turn: Lock) -> None:
    """Kill a broker while all are there, and start it again."""
    with turn:
        cluster.wait_until_whole()
        number = find()
        cluster.kill(number)
        cluster.start(number)
