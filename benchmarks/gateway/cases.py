"""What is measured of the gateway, and beside whom."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.environments import NotInstallable, environment
from benchmarks.gateway.redrive import QUEUED
from benchmarks.runs import Case

IN_FLIGHT: Final = (1, 64, 256)
ROUNDS: Final = 8  # of so many in flight at least: what is begun before the measuring begins must not count
PARTS: Final = ("cost", "memory", "journal", "faults")

BARE: Final = "aiohttp alone"
OURS: Final = "Redrive"
MEMORY: Final = f"Redrive, {QUEUED:,} requests queued"
JOURNAL: Final = "5,000 rows a second"
NO_JOURNAL: Final = "no rows"

AIOHTTP: Final = "aiohttp==3.14.5"


@dataclass(frozen=True, slots=True)
class Client:
    """A client that is driven: its requirements, the first of which pins it, and how many requests it gets."""

    module: str
    messages: int
    settings: str
    requirements: Sequence[str] = ()
    meets_faults: bool = True

    @property
    def package(self) -> str:
        """What it is called, without its version."""
        return self.requirements[0].partition("=")[0].partition("[")[0]

    @property
    def name(self) -> str:
        """`openai 3.49.0`."""
        return f"{self.package} {self.requirements[0].partition('==')[2]}"


PEERS: Final = (
    Client("peers.httpx", 512, "one client", ["httpx==0.28.1"], meets_faults=False),
    Client("peers.openai", 512, "`AsyncOpenAI`, two retries", ["openai==3.49.0"]),
    Client("peers.litellm", 256, "`Router`, one deployment, two retries", ["litellm==1.106.2"]),
    Client(
        "peers.async_batch_llm",
        1_500,
        "`LLMCallPool`: over aiohttp for its cost, over `openai` without retries before faults",
        ["async-batch-llm[openai]==0.28.0", AIOHTTP],
    ),
)


def installed(told: list[str]) -> list[tuple[Client, str]]:
    """The peers that can be had, each with its Python; the others are told."""
    found = []
    for peer in PEERS:
        try:
            found.append((peer, environment(peer.requirements)))
        except NotInstallable:
            told.append(peer.name)
    return found


def costs(peers: Sequence[tuple[Client, str]], *, scale: float) -> list[Case]:
    """Each client with one, 64 and 256 requests in flight."""
    found: list[Case] = []
    for in_flight in IN_FLIGHT:
        found += [_cost(BARE, "bare", 4_000, in_flight, scale), _cost(OURS, "redrive", 4_000, in_flight, scale)]
        found += [_cost(peer.name, peer.module, peer.messages, in_flight, scale, python) for peer, python in peers]
    return found


def named(client: str, in_flight: int) -> str:
    """What the case of a client is called."""
    return f"{client}, {in_flight} in flight"


def _cost(client: str, module: str, messages: int, in_flight: int, scale: float, python: str = "") -> Case:
    count = max(round(messages * scale), ROUNDS * in_flight)
    return Case(
        name=named(client, in_flight),
        run=f"benchmarks.gateway.{module}:run",
        arguments={"messages": count, "in_flight": in_flight},
        optional=bool(python),
        python=python or sys.executable,
    )


def others(parts: Sequence[str]) -> list[Case]:
    """What is measured of ours alone."""
    found: list[Case] = []
    if "memory" in parts:
        found.append(Case(name=MEMORY, run="benchmarks.gateway.redrive:queued", arguments={"messages": QUEUED}))
    if "journal" in parts:
        found += [
            Case(name=name, run="benchmarks.gateway.redrive:lag", arguments={"journal": on})
            for name, on in ((NO_JOURNAL, False), (JOURNAL, True))
        ]
    return found
