from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.testing.conformance import BrokerSuite, BrokerUnderTest
from tests.servers.plugin import RedisInTime


@asynccontextmanager
async def under_test(place: RedisInTime) -> AsyncIterator[BrokerUnderTest]:
    opened: list[RedisBroker] = []

    async def reopen() -> RedisBroker:
        opened.append(RedisBroker(place.url, clock=place.clock))
        return opened[-1]

    yield BrokerUnderTest(
        broker=await reopen(), clock=place.clock, elapse=place.elapse, reopen=reopen, lease=place.lease
    )
    for broker in opened:
        await broker.aclose()


class TestServer(BrokerSuite):
    @pytest.fixture
    async def broker_under_test(self, redis_in_time: RedisInTime) -> AsyncIterator[BrokerUnderTest]:
        async with under_test(redis_in_time) as brought:
            yield brought


class TestCluster(BrokerSuite):
    @pytest.fixture
    async def broker_under_test(self, cluster_in_time: RedisInTime) -> AsyncIterator[BrokerUnderTest]:
        async with under_test(cluster_in_time) as brought:
            yield brought
