"""The Kafka broker on a real one.

Kafka divides a queue's partitions among processes, and hands them over when it knows that one has gone: the two
scenarios that ask for more are played here as Kafka can play them.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from redrive.brokers.kafka import KafkaBroker
from redrive.core.delivery import Delivery  # noqa: TC001 - as everywhere else
from redrive.core.ports import Broker, Subscription
from redrive.testing.conformance import BrokerSuite, BrokerUnderTest
from redrive.testing.conformance.bench import Bench
from tests.servers.plugin import KafkaInTime


class TestKafka(BrokerSuite):
    @pytest.fixture
    async def broker_under_test(self, kafka_in_time: KafkaInTime) -> AsyncIterator[BrokerUnderTest]:
        opened: list[KafkaBroker] = []

        async def reopen() -> KafkaBroker:
            opened.append(KafkaBroker(kafka_in_time.url, clock=kafka_in_time.clock))
            return opened[-1]

        yield BrokerUnderTest(
            broker=await reopen(),
            clock=kafka_in_time.clock,
            elapse=kafka_in_time.elapse,
            reopen=reopen,
            patience=kafka_in_time.patience,
        )
        await asyncio.gather(*(broker.aclose() for broker in opened))

    async def test_workers_in_two_processes_never_hold_the_same_message(self, bench: Bench) -> None:
        here, there = await bench.worker(), await bench.worker(broker=await bench.under_test.reopen())
        ids = await bench.publish(*(b"%d" % number for number in range(20)))
        held: list[str] = []
        hands: list[tuple[Subscription, list[Delivery]]] = [(here, []), (there, [])]
        while len(held) < len(ids):
            held = []
            for worker, taken in hands:
                taken.extend(await worker.fetch(7, wait=timedelta(seconds=1)))
                lost = {id(each) for each in await worker.extend(taken)}
                held += [each.message.id for each in taken if id(each) not in lost]

        assert sorted(held) == sorted(ids)

    async def test_what_fetch_returned_is_noted_durably(self, bench: Bench) -> None:
        """As when a process ends with a message in hand."""
        process = await bench.under_test.reopen()
        taken = await self._taken_by(bench, process)
        await process.aclose()
        other = await bench.worker()
        assert await bench.nothing_for(other)

        assert (await bench.suspect(other)).message.id == taken
        assert await bench.nothing_for(other)

    @staticmethod
    async def _taken_by(bench: Bench, process: Broker) -> str:
        worker = await bench.worker(broker=process)
        await bench.publish(b"1")
        return (await bench.take_one(worker)).message.id
