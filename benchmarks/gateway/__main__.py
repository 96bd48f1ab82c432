"""The gateway beside a bare HTTP client, and beside other people's clients and gateways, before the same provider."""

import argparse
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

from benchmarks import markdown
from benchmarks.gateway.cases import OURS, PARTS, Client, costs, installed, others
from benchmarks.gateway.report import Met, report
from benchmarks.gateway.serving import Server, provider
from benchmarks.measure import machine
from benchmarks.runs import ROOT, RunFailed, run_interleaved

REPEATS = 3


def main() -> None:
    given = _given()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # as Ctrl-C does, so that the provider is stopped too
    scale = given.scale or (0.1 if given.quick else 1.0)
    repeats = given.repeats or (1 if given.quick else REPEATS)
    left_out: list[str] = []
    _tell("making the environments of the peers that have none yet")
    peers = installed(left_out) if {"cost", "faults"} & {*given.only} else []
    cases = [*(costs(peers, scale=scale) if "cost" in given.only else []), *others(given.only)]
    with provider() as server:
        samples = run_interleaved(cases, repeats=repeats, run=server, told=_tell)
        met = _met(server, peers) if "faults" in given.only else {}
    left_out += [case.name for case in cases if case.name not in samples]
    text = report(
        samples,
        conditions=_conditions(repeats, left_out),
        peers={peer.name: peer.settings for peer, _ in peers},
        met=met,
    )
    print(text)
    if scale == 1 and repeats >= REPEATS and set(given.only) == set(PARTS):
        markdown.write_section(ROOT / "docs" / "benchmarks.md", "LLM gateway", text)


def _met(server: Server, peers: Sequence[tuple[Client, str]]) -> Met:
    """Everybody before every fault."""
    _tell("faults")
    programs = [(OURS, "redrive", "redrive", sys.executable)]
    programs += [(peer.name, peer.module, peer.package, python) for peer, python in peers if peer.meets_faults]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with ThreadPoolExecutor(len(programs)) as threads:  # they mostly wait
        running = {
            name: threads.submit(server.meet, f"benchmarks.gateway.{module}:faults", python=python)
            for name, module, _, python in programs
        }
    for name, ended in running.items():
        try:
            found[name] = ended.result()
        except RunFailed as failed:
            _tell(f"{name} is left out: {failed}")
    visits = server.visits()
    for name, _, client, _ in programs:
        for fault, end in found.get(name, {}).items():
            end["visits"] = visits.get(f"{fault} {client}", [])
    return found


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests, once")
    parser.add_argument("--scale", type=float, help="the share of the requests, if neither 1 nor a tenth")
    parser.add_argument("--repeats", type=int, help=f"how often each case is run, if not {REPEATS} times")
    parser.add_argument("--only", type=_parts, default=PARTS, metavar="PARTS", help=f"of {','.join(PARTS)}")
    return parser.parse_args()


def _parts(text: str) -> Sequence[str]:
    parts = text.split(",")
    unknown = {*parts} - {*PARTS}
    if unknown:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(PARTS)}; got {', '.join(sorted(unknown))}")
    return parts


def _conditions(repeats: int, left_out: Sequence[str]) -> str:
    missing = f" Could not be installed or run: {', '.join(left_out)}." if left_out else ""
    return (
        f"`make bench-gateway`, {repeats} repeats. {machine()}, aiohttp {version('aiohttp')}, Redrive "
        f"{version('redrive')}, asyncio's own event loop. A provider on the same machine that gives the same short "
        "answer at once, in a process of its own; each client in an environment of its own. Redrive has its queue, "
        "router, limits of requests and tokens, journal, metrics and dead letters on. One in flight is mostly the time "
        "of a round trip; a message here is a request. What was imported is frozen for the garbage collector before "
        "the first request, and it looks less often, in every client, as `redrive gateway serve` does. Ratios are "
        "taken round by round."
        f"{missing}"
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
