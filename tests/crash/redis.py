"""Redis under the crash harness: a server of its own behind a bad network, and points with a command on the wire."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final, cast

from redis.asyncio.connection import AbstractConnection

from redrive.brokers.redis import keys, scripts
from redrive.worker.supervisor import Role
from tests.crash import redis_bugs
from tests.crash.adapter import Adapter
from tests.crash.scenario import Site
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer, ask

CUT: Final = 0.01  # of all answers
UNDER_A_RULE: Final = 0.5  # seconds
STILL: Final = 3.0  # seconds that a stopped server stands still: longer than the leases of a run

ON_THE_WIRE: Final[Mapping[str, str]] = {
    "a read on the wire": "XREADGROUP",
    "an ack on the wire": "XACK",
    "an outcome on the wire": "settle",
    "a reaping on the wire": "reap",
}
"""Points between the sending of a command and its answer, each with the command or the name of its script."""
BEGINNING: Final = 100  # bytes in which a command is known
KEPT: Final = (":dlq", ":outcomes")  # queues whose entries are looked at elsewhere


@contextmanager
def redis(folder: Path, *, seed: int = 1, cut: float = CUT) -> Iterator[Adapter]:
    """The adapter on a server that is killed and stopped, and of whose answers the share `cut` never arrives.

    Raises `Unavailable`.
    """
    with RedisServer(folder, {"appendonly": "yes"}) as server, FaultProxy(server.port, seed=seed) as proxy:
        proxy.cut_share = cut
        turn = Lock()

        def calm() -> Mapping[str, int]:
            proxy.cut_share = 0.0
            return {"answers cut": proxy.answers_cut}

        yield Adapter(
            url=f"redis://127.0.0.1:{proxy.port}",
            look_url=server.url,
            version=f"Redis {server.info('server')['redis_version']}",
            module=__name__,
            points=tuple(ON_THE_WIRE),
            faults={
                "SIGKILL of the server, appendfsync always": lambda: _kill(server, turn, rule="always"),
                "SIGKILL of the server, appendfsync everysec": lambda: _kill(server, turn, rule="everysec"),
                "SIGSTOP of the server beyond every lease": lambda: _stop(server, turn),
            },
            calm=calm,
            leaks=lambda: leaks_of(server.url),
        )


def _kill(server: RedisServer, turn: Lock, *, rule: str) -> None:
    """Let the server work under a rule for its log, kill it, and start it again.

    It is not killed while it flushes the log under `everysec`: what it acknowledges meanwhile is in its memory only,
    and no client can mend that.
    """
    with turn:
        server.ask("CONFIG", "SET", "appendfsync", rule)
        time.sleep(UNDER_A_RULE)
        while server.info("persistence")["aof_pending_bio_fsync"] != "0":
            time.sleep(0.001)
        server.kill()
        server.start()


def _stop(server: RedisServer, turn: Lock) -> None:
    with turn:
        server.pause()
        time.sleep(STILL)
        server.resume()


# ---------------------------------------------------------------------------------- in the processes of a run


def set_stage(site: Site) -> None:
    """Plant the run's bug if it is one of ours, and let every connection of this process pass the points.

    Not where suspects run: a death there convicts one.
    """
    if site.scenario.bug in redis_bugs.BUGS:
        redis_bugs.BUGS[site.scenario.bug]()
    if site.role == Role.SUSPECTS:
        return
    send = AbstractConnection.send_packed_command
    signs = {
        point: (name if name.isupper() else scripts.script(name).sha).encode() for point, name in ON_THE_WIRE.items()
    }

    async def staged(self: AbstractConnection, command: Any, **options: Any) -> None:
        await send(self, command, **options)
        for point, sign in signs.items():
            if sign in command[:BEGINNING]:
                site.points.reach(point)

    AbstractConnection.send_packed_command = staged  # type: ignore[method-assign, assignment]


def forget_returns(site: Site) -> None:
    """Let the broker forget what was sent back."""
    for key in _words(ask(site.scenario.url, "KEYS", "*:once:back:*")):
        ask(site.scenario.url, "DEL", key)


# ------------------------------------------------------------------------------------------- when all is done


def leaks_of(url: str) -> Sequence[str]:
    """What should not be left: keys that nobody owns, entries, and names of workers that have departed."""
    return [leak for key in _words(ask(url, "KEYS", "*")) for leak in _leaks_in(url, key)]


def _leaks_in(url: str, key: str) -> Sequence[str]:
    kind = ask(url, "TYPE", key)
    if kind == "stream":
        left = 0 if key.endswith(KEPT) else cast("int", ask(url, "XLEN", key))
        return [*([f"{left} entries in {key}"] if left else []), *_names_in(url, key)]
    if ":once:" in key:
        return () if cast("int", ask(url, "PTTL", key)) > 0 else [f"{key} without an end"]
    return () if key == keys.QUEUES or key.endswith((".redrive", ":redrive", ":workers")) else [f"{kind} {key}"]


def _names_in(url: str, stream: str) -> Iterator[str]:
    for group in cast("list[list[str]]", ask(url, "XINFO", "GROUPS", stream)):
        for consumer in cast("list[list[Any]]", ask(url, "XINFO", "CONSUMERS", stream, group[1])):
            name, pending = consumer[1], consumer[3]
            if pending or not name.startswith("~"):
                yield f"{name} with {pending} pending in {stream}"


def _words(answer: object) -> list[str]:
    return cast("list[str]", answer)
