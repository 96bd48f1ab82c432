"""The NATS broker beside a loop written by hand, and beside other people's consumers on the same server."""

from importlib.metadata import version

from benchmarks.beside import Comparison, compare
from benchmarks.nats.cases import PARTS, cases
from benchmarks.nats.peers import known
from benchmarks.nats.report import report
from benchmarks.nats.server import nats_server

NATS = Comparison(
    name="NATS",
    parts=PARTS,
    server=nats_server,
    cases=cases,
    peers=lambda _, loop: known.healthy(loop),
    server_is=lambda server: f"nats-server {server} on the same machine, file storage, nats-py {version('nats-py')}",
    work=(
        "Payloads of 200 bytes, an empty `async` handler, a backlog written by plain publishes into a stream of "
        "others. Redrive works as in a process of `redrive worker`, with leases, heartbeat, breaker, metrics, and"
        " logs at the default level. The hand-written loop has neither retry nor DLQ, and does not tell a message"
        " that killed it from its neighbours."
    ),
    report=lambda _: report,
)

if __name__ == "__main__":
    compare(NATS, __doc__)
