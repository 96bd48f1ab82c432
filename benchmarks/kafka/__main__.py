"""The Kafka broker beside a loop written by hand, and beside other people's consumers on the same cluster."""

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version

from confluent_kafka import libversion

from benchmarks import markdown
from benchmarks.kafka.cases import PARTS, cases
from benchmarks.kafka.hand import PARTITIONS
from benchmarks.kafka.peers import known
from benchmarks.kafka.report import report
from benchmarks.kafka.server import kafka_server
from benchmarks.loops import LOOPS
from benchmarks.measure import machine
from benchmarks.peers import install
from benchmarks.runs import ROOT, run_interleaved

REPEATS = 9


def main() -> None:
    given = _given()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # as Ctrl-C does, so that the server is stopped too
    scale = given.scale or (0.1 if given.quick else 1.0)
    repeats = given.repeats or (3 if given.quick else REPEATS)
    wanted = known.healthy(given.loop) if "peers" in given.only else []
    if wanted:
        _tell("making the environments of the peers that have none yet")
    peers = install(wanted, scale=scale)
    measured = [*cases(given.only, scale=scale, loop=given.loop), *peers.cases]
    with kafka_server() as server:
        conditions = _conditions(server.version, loop=given.loop, repeats=repeats)
        samples = run_interleaved(measured, repeats=repeats, run=server, told=_tell)
    left_out = [*peers.missing, *(case.name for case in measured if case.name not in samples)]
    if left_out:
        conditions += f" Could not be installed or run: {', '.join(left_out)}."
    settings = {peer.name: peer.settings for peer in wanted if peer.name in samples}
    text = report(samples, conditions=conditions, peers=settings)
    print(text)
    if scale == 1 and repeats >= REPEATS and set(given.only) == set(PARTS):
        name = "Kafka" if given.loop == LOOPS[0] else f"Kafka on {given.loop}"
        markdown.write_section(ROOT / "docs" / "benchmarks.md", name, text)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages, three repeats")
    parser.add_argument("--scale", type=float, help="the share of the messages, if neither 1 nor a tenth")
    parser.add_argument("--repeats", type=int, help=f"how often each case is run, if not {REPEATS} times")
    parser.add_argument("--loop", choices=LOOPS, default=LOOPS[0], help="the event loop of everything that has one")
    parser.add_argument("--only", type=_parts, default=PARTS, metavar="PARTS", help=f"of {','.join(PARTS)}")
    return parser.parse_args()


def _parts(text: str) -> Sequence[str]:
    parts = text.split(",")
    unknown = {*parts} - {*PARTS}
    if unknown:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")
    return parts


def _conditions(server: str, *, loop: str, repeats: int) -> str:
    uvloop = f" {version('uvloop')}" if loop == "uvloop" else ""
    return (
        f"`make bench-kafka`, {repeats} repeats. {machine()}, Kafka {server} in KRaft mode, one broker on the same "
        f"machine, confluent-kafka {version('confluent-kafka')} on librdkafka {libversion()[0]}, Redrive "
        f"{version('redrive')}; the event loop is {loop}{uvloop} wherever there is one. Payloads of 200 bytes in "
        f"{PARTITIONS} partitions, an empty handler. Redrive works as in a process of `redrive worker`, with what may "
        "have started noted in every commit, heartbeat, breaker, metrics, and logs at the default level. The "
        "hand-written loop has neither retry nor DLQ, and does not tell a message that killed it from its neighbours. "
        "Ratios are taken round by round."
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
