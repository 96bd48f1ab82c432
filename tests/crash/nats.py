"""NATS under the crash harness: a server of its own behind a bad network, and points with a word on the wire."""

import asyncio
import json
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar

import nats
from nats.aio.client import Client
from nats.errors import Error

from redrive.brokers.nats.names import BUCKET_STREAM, KEYS
from redrive.worker.supervisor import Role
from tests.crash import nats_bugs
from tests.crash.adapter import Adapter
from tests.crash.plan import ORDERS
from tests.crash.scenario import Site
from tests.servers.nats import NatsServer, version
from tests.servers.proxy import FaultProxy

T = TypeVar("T")

CUT: Final = 0.002  # of all answers: a pull has one for each message
PATIENCE: Final = 2  # seconds; a point is reached on a connection that was cut, too
STILL: Final = 4.0  # seconds that a stopped server stands still: longer than the leases of a run

ON_THE_WIRE: Final[Mapping[str, tuple[str, bytes]]] = {
    "a pull on the wire": ("$JS.API.CONSUMER.MSG.NEXT.", b""),
    "an ack on the wire": ("$JS.ACK.", b"+ACK"),
    "a nak on the wire": ("$JS.ACK.", b"-NAK"),
    "a story on the wire": (f"{KEYS}.story.", b""),
    "a letter on the wire": (f"{ORDERS}.dlq", b""),
}
"""Points behind the sending of something: the subject it goes to, and how it begins."""
KEPT: Final = (".dlq", ".outcomes")


@contextmanager
def nats_server(folder: Path, *, seed: int = 1, cut: float = CUT) -> Iterator[Adapter]:
    """The adapter on a server that is killed and stopped, and of whose answers the share `cut` never arrives.

    Raises `Unavailable`.
    """
    store = f'{{ store_dir: "{folder / "data"}", sync_interval: always }}'
    with NatsServer(folder, {"jetstream": store}) as server, FaultProxy(server.port, seed=seed) as proxy:
        proxy.cut_share = cut
        turn = Lock()

        def calm() -> Mapping[str, int]:
            proxy.cut_share = 0.0
            return {"answers cut": proxy.answers_cut}

        yield Adapter(
            url=f"nats://127.0.0.1:{proxy.port}",
            look_url=server.url,
            version=f"NATS {version(Path(server.command()[0]))}",
            module=__name__,
            points=tuple(ON_THE_WIRE),
            faults={
                "SIGKILL of the server": lambda: _kill(server, turn),
                "SIGSTOP of the server beyond every lease": lambda: _stop(server, turn),
                "every connection cut": proxy.cut,
            },
            calm=calm,
            leaks=lambda: _run(leaks_of(server.url)),
        )


def _kill(server: NatsServer, turn: Lock) -> None:
    with turn:
        server.kill()
        server.start()


def _stop(server: NatsServer, turn: Lock) -> None:
    with turn:
        server.pause()
        time.sleep(STILL)
        server.resume()


# ---------------------------------------------------------------------------------- in the processes of a run


def set_stage(site: Site) -> None:
    """Plant the run's bug if it is one of ours, and let everything that is sent pass the points.

    Not where suspects run: a death there convicts one.
    """
    if site.scenario.bug in nats_bugs.BUGS:
        nats_bugs.BUGS[site.scenario.bug]()
    if site.role == Role.SUSPECTS:
        return
    send = Client.publish

    async def staged(self: Client, subject: str, payload: bytes = b"", reply: str = "", headers: Any = None) -> None:
        await send(self, subject, payload, reply, headers)
        for point, (place, word) in ON_THE_WIRE.items():
            if subject.startswith(place) and payload.startswith(word) and point in site.points.armed():
                with suppress(Error, OSError):
                    await self.flush(PATIENCE)  # the server has it, and whoever sent it has no answer
                site.points.reach(point)

    Client.publish = staged  # type: ignore[method-assign]


def forget_returns(site: Site) -> None:
    """Let the broker forget what was sent back: the bucket, and the server, which knows it for a while."""
    _run(_forget(site.scenario.url))


async def _forget(url: str) -> None:
    client = await nats.connect(url)
    await _ask(client, f"STREAM.PURGE.{BUCKET_STREAM}", {"filter": f"{KEYS}.sent.>"})
    await client.close()


# ------------------------------------------------------------------------------------------- when all is done


async def leaks_of(url: str) -> Sequence[str]:
    """What should not be left: stories, marks, messages in a queue, and what is pending."""
    client = await nats.connect(url)
    found = []
    told = await _ask(client, f"STREAM.INFO.{BUCKET_STREAM}", {"subjects_filter": f"{KEYS}.suspect.>"})
    found += [f"a mark {subject}" for subject in told["state"].get("subjects") or ()]
    for name in (await _ask(client, "STREAM.NAMES", {}))["streams"]:
        for one in (await _ask(client, f"CONSUMER.LIST.{name}", {}))["consumers"] or ():
            if one["num_ack_pending"]:
                found.append(f"{one['num_ack_pending']} pending for {one['name']} in {name}")
    await client.close()
    return found


def _run(call: Coroutine[Any, Any, T]) -> T:
    """Whoever asks may be in an event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, call).result()


async def _ask(client: Client, verb: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.request(f"$JS.API.{verb}", json.dumps(body).encode(), timeout=5)
    found: dict[str, Any] = json.loads(answer.data)
    return found
