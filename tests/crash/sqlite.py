"""The SQLite broker under the crash harness: its facts, and points between the statements of a transaction."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

from redrive.worker.supervisor import Role
from tests.crash.adapter import Adapter
from tests.crash.points import Points
from tests.crash.scenario import Site

POINTS: Final = (
    "in a transaction, between two writes",
    "letter written, give-up not committed",
    "before a commit",
    "after a commit, before its answer",
)
WRITES: Final = ("INSERT", "UPDATE", "DELETE", "REPLACE")


def sqlite(path: Path) -> Adapter:
    """The adapter on a file that does not exist yet."""
    return Adapter(
        url=f"sqlite:///{path}",
        version=f"SQLite {sqlite3.sqlite_version}",
        module=__name__,
        points=POINTS,
        leaks=lambda: _leaks(path),
    )


def set_stage(site: Site) -> None:
    """Let every connection of this process pass the points. Not where suspects run: a death there convicts one."""
    if site.role != Role.SUSPECTS:
        StagedConnection.points = site.points
        site.points.holds_lock = lambda: StagedConnection.is_writing
        sqlite3.connect = partial(sqlite3.connect, factory=StagedConnection)  # type: ignore[assignment]


def forget_returns(site: Site) -> None:
    """Let the broker forget what was sent back."""
    with closing(sqlite3.connect(site.scenario.url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("DELETE FROM once WHERE key LIKE 'back %'")


class StagedConnection(sqlite3.Connection):
    """A connection that passes a point before, between and after the statements that write."""

    points: Points
    is_writing = False  # of the process: it has one connection
    writes = 0

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self._before(sql)
        cursor = super().execute(sql, *values)
        if sql == "COMMIT" and self.writes:
            self.points.reach("after a commit, before its answer")
        if sql in ("COMMIT", "ROLLBACK"):
            StagedConnection.is_writing = False
        return cursor

    def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
        self._before(sql)
        return super().executemany(sql, *values)

    def _before(self, sql: str) -> None:
        if sql.startswith("BEGIN"):
            StagedConnection.is_writing = True
            self.writes = 0
        elif sql == "COMMIT" and self.writes:
            self.points.reach("before a commit")
        elif sql.lstrip().startswith(WRITES):
            if "INTO once" in sql:
                self.points.reach("letter written, give-up not committed")
            if self.writes:
                self.points.reach("in a transaction, between two writes")
            self.writes += 1


def _leaks(path: Path) -> Sequence[str]:
    with closing(sqlite3.connect(path)) as connection:
        (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
        leaks = [] if integrity == "ok" else [f"integrity_check: {integrity}"]
        for table in ("fresh", "tracked", "hold", "lapsing"):
            (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - our own table
            leaks += [f"{rows} rows in {table}"] if rows else []
    return leaks
