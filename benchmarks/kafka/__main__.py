"""The Kafka broker beside a loop written by hand, and beside other people's consumers on the same cluster."""

from importlib.metadata import version

from confluent_kafka import libversion

from benchmarks.beside import Comparison, compare
from benchmarks.kafka.cases import PARTS, cases
from benchmarks.kafka.hand import PARTITIONS
from benchmarks.kafka.peers import known
from benchmarks.kafka.report import report
from benchmarks.kafka.server import kafka_server

KAFKA = Comparison(
    name="Kafka",
    parts=PARTS,
    server=kafka_server,
    cases=cases,
    peers=lambda _, loop: known.healthy(loop),
    server_is=lambda server: (
        f"Kafka {server} in KRaft mode, one broker on the same machine, confluent-kafka "
        f"{version('confluent-kafka')} on librdkafka {libversion()[0]}"
    ),
    work=(
        f"Payloads of 200 bytes in {PARTITIONS} partitions, an empty handler. Redrive works as in a process of "
        "`redrive worker`, with what may have started noted in every commit, heartbeat, breaker, metrics, and "
        "logs at the default level. The hand-written loop has neither retry nor DLQ, and does not tell a message "
        "that killed it from its neighbours."
    ),
    report=lambda _: report,
)

if __name__ == "__main__":
    compare(KAFKA, __doc__)
