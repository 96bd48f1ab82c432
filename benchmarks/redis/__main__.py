"""The Redis broker beside a loop written by hand, and beside other people's queues on the same server."""

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version

from benchmarks.beside import Comparison, compare
from benchmarks.peers import Peer
from benchmarks.redis.cases import PARTS, backlog, cases
from benchmarks.redis.peers import known
from benchmarks.redis.report import report
from benchmarks.redis.server import redis_server


def _peers(parts: Sequence[str], loop: str) -> list[Peer]:
    return [*known.healthy(loop), *(known.failing() if "failing" in parts else [])]


REDIS = Comparison(
    name="Redis",
    parts=PARTS,
    server=redis_server,
    cases=cases,
    peers=_peers,
    server_is=lambda server: (
        f"Redis {server} on the same machine without persistence, redis-py {version('redis')}, "
        f"hiredis {version('hiredis')}"
    ),
    work=(
        "Payloads of 200 bytes, an empty `async` handler, a backlog written by plain XADD. Redrive works as in a "
        "process of `redrive worker`, with leases, heartbeat, breaker, metrics, and logs at the default level. "
        "The hand-written loop has neither retry nor DLQ, and nothing takes over from it when it dies."
    ),
    report=lambda scale: partial(report, backlog=backlog(scale)),
)

if __name__ == "__main__":
    compare(REDIS, __doc__)
