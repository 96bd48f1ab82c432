import pytest

from tests.servers.redis import RedisServer, ask

EMPTY = 9
"""A database in which nothing else happens: its queues may have any name."""


@pytest.fixture
def empty_redis(redis_server: RedisServer) -> str:
    """A Redis of our own with nothing in it."""
    url = f"{redis_server.url}/{EMPTY}"
    ask(url, "FLUSHDB")
    return url
