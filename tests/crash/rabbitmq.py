"""RabbitMQ under the crash harness: a server of its own behind a bad network, and points between two writes."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

from redrive.brokers.rabbitmq.address import Address
from redrive.brokers.rabbitmq.link import Link, Posting
from redrive.brokers.rabbitmq.names import BOOK, Place, once_of
from redrive.brokers.rabbitmq.notes import Notes
from redrive.brokers.rabbitmq.office import Office
from redrive.brokers.rabbitmq.settling import Settler
from redrive.clock import SystemClock
from redrive.core.errors import BrokerError
from redrive.worker.supervisor import Role
from tests.crash import rabbitmq_bugs
from tests.crash.adapter import Adapter
from tests.crash.plan import QUEUES
from tests.crash.scenario import GROUP, Site
from tests.servers.proxy import FaultProxy
from tests.servers.rabbitmq import RabbitServer, version

CUT: Final = 0.0005  # of all answers: each cuts a connection with everything on it
STILL: Final = 7.0  # seconds that a stopped server stands still: longer than the leases of a run
QUIET: Final = 5.0  # seconds: a few heartbeats of workers, at which they tell what they have in hand
HEARTBEAT: Final = 2  # seconds: a worker that stands still is known after two to three of them

NOTED: Final = "before a note of what may start"
UNWRITTEN: Final = "before a copy or a letter is written"
WRITTEN: Final = "written, not acked"
ACKED: Final = "acked, not on its way"
OF_OURS: Final = (".notes", ".alive", "..book", "..once")  # what is written there is about messages, and none


@contextmanager
def rabbitmq(folder: Path, *, seed: int = 1, cut: float = CUT) -> Iterator[Adapter]:
    """The adapter on a server that is killed and stopped, and whose connections are cut. Raises `Unavailable`."""
    with RabbitServer(folder) as server, FaultProxy(server.port, seed=seed) as proxy:
        proxy.cut_share = cut
        turn = Lock()

        def calm() -> Mapping[str, int]:
            proxy.cut_share = 0.0
            return {"connections cut": proxy.answers_cut}

        yield Adapter(
            url=f"amqp://guest:guest@127.0.0.1:{proxy.port}/?heartbeat={HEARTBEAT}",
            look_url=server.url,
            version=f"RabbitMQ {version(server.url)}",
            module=__name__,
            points=(NOTED, UNWRITTEN, WRITTEN, ACKED),
            faults={
                "SIGKILL of the server": lambda: _kill(server, turn),
                "SIGSTOP of the server beyond every lease": lambda: _stop(server, turn),
                "every connection cut": proxy.cut,
            },
            calm=calm,
            leaks=lambda: leaks_of(server.url),
            by_key=True,
            quiet=QUIET,
        )


def _kill(server: RabbitServer, turn: Lock) -> None:
    """Not within moments of the beginning of a queue: RabbitMQ 3.10 forgets such a queue, with what is in it."""
    with turn:
        server.keeps_its_queues()
        server.kill()
        server.start()


def _stop(server: RabbitServer, turn: Lock) -> None:
    with turn:
        server.pause()
        time.sleep(STILL)
        server.resume()


# ---------------------------------------------------------------------------------- in the processes of a run


def set_stage(site: Site) -> None:
    """Plant the run's bug if it is one of ours, and let workers pass the points.

    Not where suspects run: a death there convicts one. A producer has points of its own.
    """
    if site.scenario.bug in rabbitmq_bugs.BUGS:
        rabbitmq_bugs.BUGS[site.scenario.bug]()
    if site.role != Role.WORKER:
        return
    write, publish, ack = Notes.write, Link.publish, Settler._ack  # noqa: SLF001 - between the steps

    async def staged_write(self: Notes, kind: str, *arguments: Any, **options: Any) -> None:
        if kind == "take":
            site.points.reach(NOTED)
        await write(self, kind, *arguments, **options)

    async def staged_publish(self: Link, postings: Sequence[Posting]) -> Sequence[BrokerError | None]:
        is_work = any(not posting.routing_key.endswith(OF_OURS) for posting in postings)
        if is_work:
            site.points.reach(UNWRITTEN)
        answers = await publish(self, postings)
        if is_work:
            site.points.reach(WRITTEN)
        return answers

    async def staged_ack(self: Settler, holds: Any) -> None:
        await ack(self, holds)
        if holds:
            site.points.reach(ACKED)

    Notes.write = staged_write  # type: ignore[method-assign]
    Link.publish = staged_publish  # type: ignore[method-assign]
    Settler._ack = staged_ack  # type: ignore[method-assign]  # noqa: SLF001


def forget_returns(site: Site) -> None:
    """Let the broker forget what was sent back."""
    _ask(site.scenario.url, _purge)


async def _purge(office: Office) -> None:
    async with office.link.for_a_moment() as channel:
        for queue in QUEUES:
            await channel.queue_delete(f"{queue}..once")


# ------------------------------------------------------------------------------------------- when all is done


def wipe(url: str) -> None:
    """Delete everything of a run, so that the server is as good as new."""
    _ask(url, _delete_all)


async def _delete_all(office: Office) -> None:
    await office.book.open()
    names = {BOOK}
    for queue, group in office.book.queues():
        place, everybody = Place(queue, group), Place(queue, "")
        names |= {queue, once_of(queue), place.beside, place.suspects, place.held, place.paused, place.notes}
        names |= {place.alive, *(each.hold(step) for each in (place, everybody) for step in office.book.holds(each))}
    async with office.link.for_a_moment() as channel:
        for name in names:
            await channel.queue_delete(name)


def leaks_of(url: str) -> Sequence[str]:
    """What should not be left: suspects, messages that are held, messages that wait."""

    async def look(office: Office) -> list[str]:
        places = [Place(queue, GROUP) for queue in QUEUES]
        await office.book.open()
        names = [name for place in places for name in (place.suspects, place.held, place.queue)]
        names += [place.hold(step) for place in places for step in office.book.holds(place)]
        return [f"{count} messages in {name}" for name in names if (count := await office.link.count(name))]

    found: list[str] = _ask(url, look)
    return found


def _ask(url: str, question: Any) -> Any:
    async def ask() -> Any:
        office = Office(Address.of(url), name="look", clock=SystemClock(), sink=None)
        try:
            return await question(office)
        finally:
            await office.aclose()

    with ThreadPoolExecutor(1) as thread:  # whoever asks may be in an event loop
        return thread.submit(asyncio.run, ask()).result()
