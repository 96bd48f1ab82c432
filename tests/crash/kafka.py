"""Kafka under the crash harness: a broker that is killed, members that come and go, and points in commits."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

from confluent_kafka import Consumer

from redrive.brokers.kafka.address import Address
from redrive.brokers.kafka.book import Change
from redrive.brokers.kafka.clerk import HELD, SUSPECT
from redrive.brokers.kafka.names import group_reading, lane_of
from redrive.brokers.kafka.notes import Notes
from redrive.brokers.kafka.office import Office
from redrive.brokers.kafka.transactions import Transactions
from redrive.clock import SystemClock
from redrive.worker.supervisor import Role
from tests.crash import kafka_bugs
from tests.crash.adapter import Adapter
from tests.crash.plan import QUEUES
from tests.crash.scenario import GROUP, Site
from tests.servers.kafka import VERSION, KafkaServer

SESSION: Final = 2000  # milliseconds after which a member that says nothing is dead
VISIT: Final = 1.0  # seconds that a member stays who only disturbs
VISITS: Final = 3
STILL: Final = 3.0  # seconds that a stopped server stands still: longer than the leases of a run

RESTARTS: Final = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""A broker that was killed is not let in again before its last session is over."""

POINTS: Final = (
    "before a note of what may start",
    "in a transaction, not committed",
    "committed, before the answer",
)


@contextmanager
def kafka(folder: Path) -> Iterator[Adapter]:
    """The adapter on a broker that is killed and stopped, and whose groups are disturbed. Raises `Unavailable`."""
    with KafkaServer(folder, RESTARTS) as server:
        turn = Lock()
        url = f"kafka://{server.address}?partitions=4&session.timeout.ms={SESSION}&heartbeat.interval.ms=200"
        yield Adapter(
            url=f"{url}&reconnect.backoff.ms=20&reconnect.backoff.max.ms=500&fetch.wait.max.ms=20",
            version=f"Kafka {VERSION}",
            module=__name__,
            points=POINTS,
            faults={
                "SIGKILL of the broker": lambda: _kill(server, turn),
                "SIGSTOP of the broker beyond every lease": lambda: _stop(server, turn),
                "forced rebalances": lambda: disturb(server.address),
                "more forced rebalances": lambda: disturb(server.address),
            },
            leaks=lambda: leaks_of(url),
        )


def _kill(server: KafkaServer, turn: Lock) -> None:
    with turn:
        server.kill()
        server.start()


def _stop(server: KafkaServer, turn: Lock) -> None:
    with turn:
        server.pause()
        time.sleep(STILL)
        server.resume()


def disturb(address: str) -> None:
    """Join every group for a moment, again and again, and take partitions away from those who work on them."""
    for _ in range(VISITS):
        _visit(address)
        time.sleep(VISIT)


def _visit(address: str) -> None:
    members = []
    for name, topic in [(queue, topic) for queue in QUEUES for topic in (queue, lane_of(queue, GROUP))]:
        settings = {
            "bootstrap.servers": address,
            "group.id": group_reading(topic, queue=name, group=GROUP),
            "partition.assignment.strategy": "cooperative-sticky",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION,
            "log_level": 0,
        }
        members.append(Consumer(settings))
        members[-1].subscribe([topic])
    ends = time.monotonic() + VISIT
    while time.monotonic() < ends:
        for member in members:
            member.poll(0.05)
    for member in members:
        member.close()


# ---------------------------------------------------------------------------------- in the processes of a run


def set_stage(site: Site) -> None:
    """Plant the run's bug if it is one of ours, and let commits pass the points.

    Not where suspects run: a death there convicts one.
    """
    if site.scenario.bug in kafka_bugs.BUGS:
        kafka_bugs.BUGS[site.scenario.bug](site)
    if site.role == Role.SUSPECTS:
        return
    commit, note = Transactions._commit, Notes.commit  # noqa: SLF001 - between the steps of a transaction

    def staged_commit(self: Transactions, producer: Any) -> None:
        site.points.reach("in a transaction, not committed")
        commit(self, producer)
        site.points.reach("committed, before the answer")

    def staged_note(self: Notes, *arguments: Any, **options: Any) -> None:
        site.points.reach("before a note of what may start")
        note(self, *arguments, **options)

    Transactions._commit = staged_commit  # type: ignore[method-assign]  # noqa: SLF001
    Notes.commit = staged_note  # type: ignore[method-assign]


def forget_returns(site: Site) -> None:
    """Let the broker forget what was sent back."""
    office = _office(site.scenario.url)
    try:
        office.ledger.change(
            lambda rows: Change({key: None for key in rows if key.startswith("sent:")}) if rows else None
        )
    finally:
        office.close()


# ------------------------------------------------------------------------------------------- when all is done


def leaks_of(url: str) -> Sequence[str]:
    """What should not be left: suspects, and messages that are held."""
    office = _office(url)
    try:
        return [
            f"{key} in the book of {queue}"
            for queue in QUEUES
            for key in office.book(queue, GROUP).refresh()
            if key.startswith((SUSPECT, HELD))
        ]
    finally:
        office.close()


def _office(url: str) -> Office:
    return Office(Address.of(url), name="kafka", clock=SystemClock(), sink=None)
