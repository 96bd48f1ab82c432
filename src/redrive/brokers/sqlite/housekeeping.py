"""What a heartbeat does: say that we live, find those who do not, forget what nobody can ask for any more."""

from datetime import timedelta
from typing import Final, NamedTuple

from redrive.brokers.process import is_dead
from redrive.brokers.sqlite.rows import Lane
from redrive.brokers.sqlite.suspects import count_suspects, reap
from redrive.brokers.sqlite.transaction import MICROSECOND, Transaction, as_instant
from redrive.core.ports import Alive

HEARD_OF: Final = timedelta(seconds=30) // MICROSECOND
# How long a settle may be late and still hear that it has lost its message; afterwards it hears that it was repeated.
GIVEN_BACK_FOR: Final = timedelta(days=1) // MICROSECOND
# How long a letter is known to have been sent back. Redrives are resumed within hours or days, not months.
ONCE_FOR: Final = timedelta(days=90) // MICROSECOND


class Pulse(NamedTuple):
    """What a worker says about itself."""

    owner: str
    host: str
    pid: int
    process: str
    version: str
    paused: str | None
    state: str


def beat(lane: Lane, pulse: Pulse, transaction: Transaction) -> int:
    """Write the worker's record, make suspects of what the dead held, tidy up; return how many suspects wait."""
    transaction.execute(
        "INSERT OR REPLACE INTO alive (lane, owner, host, pid, process, version, paused, state, seen_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (lane.id, *pulse, transaction.now),
    )
    reap(lane, transaction)
    transaction.execute("DELETE FROM alive WHERE lane = ? AND seen_at < ?", (lane.id, transaction.now - HEARD_OF))
    transaction.execute("DELETE FROM given_back WHERE at < ?", (transaction.now - GIVEN_BACK_FOR,))
    transaction.execute("DELETE FROM once WHERE at < ?", (transaction.now - ONCE_FOR,))
    return count_suspects(lane, transaction)


def sign_off(lane: Lane, owner: str, transaction: Transaction) -> None:
    """Take the worker off the list of those alive."""
    transaction.execute("DELETE FROM alive WHERE lane = ? AND owner = ?", (lane.id, owner))


def workers(lane: Lane, transaction: Transaction) -> list[Alive]:
    """The workers heard of lately that are not proven dead."""
    rows = transaction.execute(
        "SELECT owner, host, pid, version, seen_at, paused, state, process FROM alive"
        " WHERE lane = ? AND seen_at >= ? ORDER BY owner",
        (lane.id, transaction.now - HEARD_OF),
    )
    return [
        Alive(owner, host, pid, version, seen_at=as_instant(seen_at), paused=paused, state=state)
        for owner, host, pid, version, seen_at, paused, state, process in rows
        if not is_dead(process)
    ]
