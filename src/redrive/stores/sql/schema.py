"""From whatever schema a database has to the one this code knows, with its data."""

from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, select, table
from sqlalchemy import column as column_

from redrive.core.errors import StoreError

HEAD: Final = "0010"
_SCRIPTS = Path(__file__).parent / "migrations"
_version = table("alembic_version", column_("version_num"))


def is_current(connection: Connection) -> bool:
    """Whether nothing has to be migrated. Needs no Alembic: opening a store stays quick."""
    return _revision(connection) == HEAD


def migrate(connection: Connection, *, to: str = HEAD) -> None:
    """Bring the schema forward, in the transaction that is open. Raises `StoreError` for one from a later version."""
    from alembic.migration import MigrationContext  # noqa: PLC0415 - seldom needed, slow to load
    from alembic.operations import Operations  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    scripts = ScriptDirectory(str(_SCRIPTS))
    now = _revision(connection)
    known = [script.revision for script in scripts.walk_revisions()]
    if now is not None and now not in known:
        raise StoreError(
            f"the letter store has schema {now}, and this version of Redrive knows up to {HEAD}: use a newer Redrive"
        )
    context = MigrationContext.configure(connection)
    steps = [*scripts.iterate_revisions(to, now or "base")]
    for script in reversed(steps):
        with Operations.context(context):
            script.module.upgrade()
        context.stamp(scripts, script.revision)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_version.name):
        return None
    found: str | None = connection.execute(select(_version.c.version_num)).scalar()
    return found
