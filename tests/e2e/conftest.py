from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.alertmanager import Alertmanager, Somebody, somebody
from tests.servers.redis import RedisServer, ask

EMPTY = 9
"""A database in which nothing else happens: its queues may have any name."""


@pytest.fixture
def empty_redis(redis_server: RedisServer) -> str:
    """A Redis of our own with nothing in it."""
    url = f"{redis_server.url}/{EMPTY}"
    ask(url, "FLUSHDB")
    return url


@pytest.fixture
def caller() -> Iterator[Somebody]:
    """Whoever is called by the Alertmanager."""
    with somebody() as one:
        yield one


@pytest.fixture
def alertmanager(tmp_path: Path, caller: Somebody) -> Iterator[Alertmanager]:
    """An Alertmanager of one's own, which calls them."""
    with Alertmanager(tmp_path / "alertmanager", caller.url) as server:
        yield server
