"""The RabbitMQ broker beside a loop written by hand, and beside other people's consumers on the same server."""

from importlib.metadata import version

from benchmarks.beside import Comparison, compare
from benchmarks.rabbitmq.cases import PARTS, cases
from benchmarks.rabbitmq.peers import known
from benchmarks.rabbitmq.report import report
from benchmarks.rabbitmq.server import rabbitmq_server

RABBITMQ = Comparison(
    name="RabbitMQ",
    parts=PARTS,
    server=rabbitmq_server,
    cases=cases,
    peers=lambda _, loop: known.healthy(loop),
    server_is=lambda server: f"RabbitMQ {server}, one node on the same machine, aio-pika {version('aio-pika')}",
    work=(
        "Payloads of 200 bytes in a quorum queue, persistent, an empty handler, an ack per message. Redrive works"
        " as in a process of `redrive worker`, with what may have started noted before every hand-out, heartbeat,"
        " breaker, metrics, and logs at the default level. The hand-written loop has neither retry nor DLQ, and "
        "does not tell a message that killed it from its neighbours."
    ),
    report=lambda _: report,
)

if __name__ == "__main__":
    compare(RABBITMQ, __doc__)
