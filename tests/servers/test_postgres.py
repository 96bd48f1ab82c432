import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from tests.servers.postgres import Databases, PostgresServer, ask, empty
from tests.servers.server import StartFailed, until


def test_what_was_committed_outlives_a_killed_server_which_comes_back_at_the_same_place(
    fresh_postgres: PostgresServer,
) -> None:
    ask(fresh_postgres.url, "CREATE TABLE kept AS SELECT 7 AS number")
    first_pid = fresh_postgres.pid
    fresh_postgres.kill()
    with pytest.raises(OSError, match="Connect call failed"):
        ask(fresh_postgres.url, "SELECT 1")
    fresh_postgres.start()

    assert fresh_postgres.pid != first_pid
    assert ask(fresh_postgres.url, "SELECT number FROM kept") == 7


def test_somebody_elses_server_is_not_taken_for_ours(fresh_postgres: PostgresServer) -> None:
    late = PostgresServer()
    late.port = fresh_postgres.port

    with pytest.raises(StartFailed, match="Address already in use"):
        late.start()
    late.stop()


def test_a_database_comes_empty_and_goes(postgres_databases: Databases) -> None:
    with postgres_databases.fresh() as url:
        tables = ask(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")

    assert tables == 0
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        ask(url, "SELECT 1")


def test_an_emptied_store_keeps_its_tables(postgres_url: str) -> None:
    ask(postgres_url, "INSERT INTO counter (name, last) VALUES ('letter', 3)")
    version = ask(postgres_url, "SELECT version_num FROM alembic_version")
    empty(postgres_url)

    assert ask(postgres_url, "SELECT count(*) FROM counter") == 0
    assert ask(postgres_url, "SELECT version_num FROM alembic_version") == version


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of the death of its parent")
def test_a_server_dies_with_the_process_that_started_it() -> None:
    program = (
        "import signal\n"
        "from tests.servers.postgres import PostgresServer\n"
        "server = PostgresServer()\n"
        "server.start()\n"
        "print(server.url, server.folder, flush=True)\n"
        "signal.pause()\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=root) as starter:
        assert starter.stdout is not None
        url, folder = starter.stdout.readline().split()
        answer = ask(url, "SELECT 1")
        os.kill(starter.pid, signal.SIGKILL)

    assert answer == 1
    until(lambda: not _answers(url), what="the server gone")
    subprocess.run(["rm", "-rf", folder], check=True)


def _answers(url: str) -> bool:
    try:
        return bool(ask(url, "SELECT 1") == 1)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
