"""A failover under load: a producer that numbers its messages, two workers, and an account of every number.

`python -m tests.redis.failover` is the long form: it runs every case again and again, and shows the sums.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, Protocol, Self

import redis

import redrive.app
from redrive.brokers.redis import transaction
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerError
from redrive.core.event import BrokerFaulted, Event
from redrive.worker.consumer import ConsumerOptions
from tests.servers.install import Unavailable
from tests.servers.ports import free_port
from tests.servers.redis import RedisServer
from tests.servers.redis_cluster import RedisCluster
from tests.servers.redis_sentinel import WatchedRedis
from tests.servers.server import PATIENCE, until

LEASE: Final = 1.5
CONFIRM_WITHIN: Final = 300  # milliseconds; a failover takes longer
PUBLISHERS: Final = 4
WORKERS: Final = 2
SHARES: Final = {"ok": 0.85, "flaky": 0.1, "poison": 0.05}


class Servers(Protocol):
    """Servers of which one takes the place of another."""

    @property
    def url(self) -> str: ...

    def pair(self, queue: str) -> tuple[RedisServer, RedisServer]:
        """The primary that has a queue, and its replica."""
        ...

    def wait_for_promotion(self, replica: RedisServer) -> None: ...

    def bring_back(self, fallen: RedisServer, primary: RedisServer) -> None:
        """Let a server that has just started follow the one that took its place, and wait until it is in step."""
        ...


class Watched:
    """Two servers and a sentinel."""

    def __init__(self, servers: WatchedRedis) -> None:
        self._servers = servers
        self.url = servers.url
        self.wait_for_promotion = servers.wait_for_promotion

    def pair(self, queue: str) -> tuple[RedisServer, RedisServer]:
        del queue
        primary = self._servers.primary
        return primary, next(server for server in self._servers.servers if server is not primary)

    def bring_back(self, fallen: RedisServer, primary: RedisServer) -> None:
        fallen.ask("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: follows(fallen, primary), what="the replica in step")


class Clustered:
    """Three primaries, each with a replica."""

    def __init__(self, servers: RedisCluster) -> None:
        self._servers = servers
        self.url = servers.url
        self.wait_for_promotion = servers.wait_for_promotion

    def pair(self, queue: str) -> tuple[RedisServer, RedisServer]:
        number = self._servers.number_of(queue)
        first, second = self._servers.primaries[number], self._servers.replicas[number]
        return (first, second) if first.info("replication")["role"] == "master" else (second, first)

    def bring_back(self, fallen: RedisServer, primary: RedisServer) -> None:
        # it knows by itself whom it has to follow
        until(lambda: follows(fallen, primary), what="the replica in step")


def follows(server: RedisServer, primary: RedisServer) -> bool:
    """Whether a server is a replica in step with a primary, by the word of both."""
    try:
        ours, its = server.info("replication"), primary.info("replication")
        return ours.get("master_link_status") == "up" and f"port={server.port},state=online" in its.get("slave0", "")
    except redis.ConnectionError:  # it is loading
        return False


@dataclass(slots=True)
class Account:
    """What became of every number."""

    fates: dict[int, str] = field(default_factory=dict)
    acknowledged: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    done: Counter[int] = field(default_factory=Counter)
    dead: Counter[int] = field(default_factory=Counter)
    faults: list[BrokerFaulted] = field(default_factory=list)
    outage: float = 0.0

    @property
    def ended(self) -> int:
        """How many publishes have ended, one way or the other."""
        return len(self.acknowledged) + len(self.refused)

    @property
    def lost(self) -> set[int]:
        """Acknowledged, and neither handled nor dead-lettered."""
        return self.acknowledged - set(self.done) - set(self.dead)

    @property
    def innocents(self) -> set[int]:
        """Dead-lettered, though they would have gone well."""
        return {number for number in self.dead if self.fates[number] != "poison"}

    @property
    def phantoms(self) -> set[int]:
        """Handled or dead-lettered, though nobody has sent them."""
        return (set(self.done) | set(self.dead)) - set(self.fates)

    @property
    def handled_twice(self) -> int:
        return self.done.total() - len(self.done)

    @property
    def dead_twice(self) -> int:
        return self.dead.total() - len(self.dead)

    def row(self) -> dict[str, float]:
        """The figures of a run."""
        return {
            "acknowledged": len(self.acknowledged),
            "not confirmed": len(self.refused),
            "lost": len(self.lost),
            "handled twice": self.handled_twice,
            "innocents": len(self.innocents),
            "letters": len(self.dead),
            "letters twice": self.dead_twice,
            "faults": len(self.faults),
            "outage": self.outage,
        }


class Load:
    """A producer and its workers on one queue. Messages are numbered; a seed says how each of them will go."""

    def __init__(self, url: str, *, queue: str, seed: int) -> None:
        self.account = Account()
        self.queue = queue
        self._random = Random(seed)
        self._shop = redrive.app.App(url, name="shop")
        self._workers = [self._worker(url) for _ in range(WORKERS)]
        self._running = AsyncExitStack()
        self._publishing: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as running:
            await running.enter_async_context(self._shop)
            for worker in self._workers:
                await running.enter_async_context(worker.worker())
            self._running = running.pop_all()
        self._publishing = [asyncio.create_task(self._publish()) for _ in range(PUBLISHERS)]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._hush()
        await self._running.aclose()

    async def reach(self, condition: Callable[[], object], *, what: str) -> None:
        """Go on until something is so."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                assert not any(task.done() for task in self._publishing), f"a publisher ended before: {what}"
                await asyncio.sleep(0.005)

    async def more(self, count: int) -> None:
        """Go on until so many more messages are acknowledged."""
        wanted = len(self.account.acknowledged) + count
        await self.reach(lambda: len(self.account.acknowledged) >= wanted, what=f"{count} more acknowledged")

    async def drain(self) -> None:
        """Publish no more, let the workers end what is there, and read the DLQ."""
        await self._hush()
        async with asyncio.timeout(PATIENCE):
            while not await self._is_drained():  # noqa: ASYNC110 - the server tells no one
                await asyncio.sleep(0.05)
        entries = await self._shop.broker.dead_letters(self.queue).peek(100_000)
        self.account.dead.update(int(entry.letter.payload or b"-1") for entry in entries)

    async def _is_drained(self) -> bool:
        try:
            depth = await self._shop.broker.depth(self.queue, group="shop")
        except BrokerError:  # the group is made again by whoever misses it first
            return False
        return not depth.waiting + depth.in_flight + depth.scheduled

    async def _hush(self) -> None:
        for task in self._publishing:
            task.cancel()
        await asyncio.gather(*self._publishing, return_exceptions=True)
        self._publishing = []

    async def _publish(self) -> None:
        account = self.account
        while True:
            number = len(account.fates)
            account.fates[number] = self._random.choices([*SHARES], [*SHARES.values()])[0]
            try:
                await self._shop.publish(self.queue, str(number))
            except BrokerError:
                account.refused.add(number)
                await asyncio.sleep(0.05)
            else:
                account.acknowledged.add(number)
            await asyncio.sleep(self._random.uniform(0, 0.01))

    def _worker(self, url: str) -> redrive.app.App:
        app = redrive.app.App(url, name="shop")
        app.bus.subscribe(self._hear)
        options = ConsumerOptions(retry=[0.05] * 2, lease=LEASE, breaker=None)

        @app.consumer(self.queue, **options)
        async def handle(payload: bytes, delivery: Delivery) -> None:
            number = int(payload)
            fate = self.account.fates[number]
            await asyncio.sleep(0)
            if fate == "poison" or (fate == "flaky" and not delivery.failures):
                raise RuntimeError(fate)
            self.account.done[number] += 1

        return app

    def _hear(self, event: Event) -> None:
        if isinstance(event, BrokerFaulted):
            self.account.faults.append(event)


async def fail_over(servers: Servers, *, durability: str, stalled: bool, seed: int, messages: int = 200) -> Account:
    """Kill the primary while messages are published and handled; go on with the one that takes its place.

    `stalled`: the replica hears nothing for a while before that, so what the primary acknowledges alone dies with it.
    """
    queue = f"orders-{durability}-{stalled}-{seed}"
    primary, replica = await asyncio.to_thread(servers.pair, queue)
    async with Load(f"{servers.url}?durability={durability}", queue=queue, seed=seed) as load:
        account = load.account
        await load.more(messages)
        if stalled:
            await asyncio.to_thread(replica.ask, "REPLICAOF", "127.0.0.1", free_port())
            begun, refused = account.ended, len(account.refused)
            await load.reach(
                lambda: account.ended >= begun + messages or len(account.refused) >= refused + PUBLISHERS,
                what="some published without the replica",
            )
        struck = time.monotonic()
        await asyncio.to_thread(primary.kill)
        await asyncio.to_thread(servers.wait_for_promotion, replica)
        primary.start()  # not in a thread, with which it would end
        await asyncio.to_thread(servers.bring_back, primary, replica)
        await load.more(1)
        account.outage = time.monotonic() - struck
        await load.more(messages)
        await load.drain()
    return account


# ----------------------------------------------------------------------------------------------- the long form

CASES: Final = (
    ("sentinel", "killed", "local"),
    ("sentinel", "killed", "wait:1"),
    ("sentinel", "replica cut off, then killed", "local"),
    ("sentinel", "replica cut off, then killed", "wait:1"),
    ("cluster", "killed", "local"),
    ("cluster", "killed", "wait:1"),
)


@contextmanager
def all_servers(folder: Path) -> Iterator[dict[str, Servers]]:
    """Both kinds of servers, by name."""
    with ExitStack() as running:
        watched = running.enter_context(WatchedRedis(folder / "watched"))
        cluster = running.enter_context(RedisCluster(folder / "cluster", replicated=True))
        yield {"sentinel": Watched(watched), "cluster": Clustered(cluster)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.redis.failover", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="of each case (default: %(default)s)")
    parser.add_argument("--messages", type=int, default=1000, help="in each part of a run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next one has the next")
    given = parser.parse_args()
    transaction.CONFIRM_WITHIN = CONFIRM_WITHIN  # type: ignore[misc]
    rows: dict[tuple[str, str, str], list[Account]] = {}
    with tempfile.TemporaryDirectory(prefix="redrive-failover-") as folder, all_servers(Path(folder)) as servers:
        for seed in range(given.seed, given.seed + given.runs):
            for case in CASES:
                kind, strike, durability = case
                run = fail_over(
                    servers[kind],
                    durability=durability,
                    stalled=strike != "killed",
                    seed=seed,
                    messages=given.messages,
                )
                account = asyncio.run(run)
                rows.setdefault(case, []).append(account)
                print(seed, *case, account.row(), flush=True)
    print("", table(rows), sep="\n")
    accounts = [account for case, found in rows.items() for account in found if case[2] != "local"]
    return 1 if any(account.lost or account.innocents for account in accounts) else 0


def table(rows: dict[tuple[str, str, str], list[Account]]) -> str:
    """The sums of every case, in Markdown."""
    names = [*Account().row()]
    lines = [["servers", "primary", "durability", "runs", *names], ["---"] * (4 + len(names))]
    for case, accounts in rows.items():
        figures = [[account.row()[name] for account in accounts] for name in names]
        told = [
            f"{max(one):.1f} s at most" if name == "outage" else f"{sum(one):,}"
            for name, one in zip(names, figures, strict=True)
        ]
        lines.append([*case, str(len(accounts)), *told])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unavailable as absence:
        sys.exit(str(absence))
