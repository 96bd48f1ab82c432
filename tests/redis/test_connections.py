"""Connections are closed, whoever is late."""

import asyncio

import pytest
import redis as plain

from redrive.brokers.redis.address import Address
from redrive.brokers.redis.server import Server
from redrive.core.errors import BrokerUnavailable
from tests.servers.redis import RedisServer
from tests.servers.server import until


async def test_a_connection_that_is_given_back_after_the_end_is_closed(redis_server: RedisServer) -> None:
    name = "late-comer"
    server = Server(Address.of(f"{redis_server.url}?client_name={name}"))
    wire = server.open_wire("orders")
    await wire.call("PING")
    await server.aclose()
    with pytest.raises(BrokerUnavailable, match="closed meanwhile"):
        await wire.call("PING")
    await wire.call("PING")  # as whoever insists does
    await wire.aclose()

    with plain.Redis.from_url(redis_server.url, protocol=2) as client:

        def names() -> set[str]:
            return {found["name"] for found in client.client_list()}

        await asyncio.to_thread(until, lambda: name not in names(), what="the connection is closed")
        assert name not in names()
