"""A server that is killed, connections that are cut, consumers that are deleted, clocks that are ahead."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from nats.aio.client import Client

from redrive.brokers.nats import NatsBroker
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerUnavailable
from redrive.core.message import Message
from redrive.core.outcome import Settlement, SettleStatus
from redrive.core.ports import Subscription
from redrive.testing.conformance.bench import Bench
from tests.nats.scenes import WAIT, ask, bench_on, join, take
from tests.servers.nats import NatsServer
from tests.servers.proxy import FaultProxy

Connect = Callable[[str], NatsBroker]


async def two_in_hand(broker: NatsBroker, queue: str) -> tuple[Bench, Subscription, Sequence[Delivery]]:
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    await bench.publish(b"1", b"2")
    return bench, worker, await take(worker, 2)


async def test_everything_goes_on_after_the_server_was_killed(
    connect: Connect, fresh_nats: NatsServer, queue: str
) -> None:
    bench = bench_on(connect(fresh_nats.url), queue)
    worker = await join(bench.broker, queue, lease=timedelta(seconds=2))
    await bench.publish(b"failed", b"waits")
    (failed,) = await take(worker, 1)
    await worker.settle([bench.retry(failed, timedelta(seconds=1))])
    await asyncio.to_thread(fresh_nats.kill)
    with pytest.raises(BrokerUnavailable):
        await worker.fetch(1, wait=timedelta(seconds=1))
    await asyncio.to_thread(fresh_nats.start)
    found = await take(worker, 2)

    assert sorted((each.message.body, each.failures) for each in found) == [(b"failed", 1), (b"waits", 0)]
    assert [each.status for each in await worker.settle(found)] == ["done", "done"]


async def test_whoever_waits_on_a_connection_that_is_cut_is_told_at_once(
    connect: Connect, nats_server: NatsServer, queue: str
) -> None:
    with FaultProxy(nats_server.port) as proxy:
        worker = await join(connect(f"nats://127.0.0.1:{proxy.port}"), queue)
        waiting = asyncio.ensure_future(worker.fetch(1, wait=timedelta(minutes=10)))
        await asyncio.sleep(0.1)
        await asyncio.to_thread(proxy.cut)
        with pytest.raises(BrokerUnavailable, match="lost"):
            await asyncio.wait_for(waiting, WAIT.total_seconds())


async def test_an_outcome_whose_answer_was_lost_is_carried_out_once(
    connect: Connect, nats_server: NatsServer, queue: str
) -> None:
    with FaultProxy(nats_server.port) as proxy:
        bench, worker, (first, second) = await two_in_hand(connect(f"nats://127.0.0.1:{proxy.port}"), queue)
        items = [bench.give_up(first, worker), bench.retry(second, timedelta(minutes=5))]
        proxy.cut_share = 1.0
        for _ in range(3):
            with pytest.raises(BrokerUnavailable):
                await worker.settle(items)
        proxy.cut_share = 0.0
        answers = await worker.settle(items)

        assert [answer.status for answer in answers] == [SettleStatus.DONE, SettleStatus.DONE]
        assert await bench.counts() == {"scheduled": 1, "dead": 1}


async def test_a_letter_whose_connection_was_cut_is_not_refused(
    connect: Connect, nats_server: NatsServer, queue: str
) -> None:
    """For what is refused may be dropped, where the user asked for best effort."""
    with FaultProxy(nats_server.port) as proxy:
        bench, worker, (first, second) = await two_in_hand(connect(f"nats://127.0.0.1:{proxy.port}"), queue)
        await worker.settle([bench.give_up(first, worker)])  # the DLQ has been begun: the letter is the next thing said
        proxy.cut_share = 1.0
        with pytest.raises(BrokerUnavailable):
            await worker.settle([bench.give_up(second, worker)])
        proxy.cut_share = 0.0
        (answer,) = await worker.settle([bench.give_up(second, worker)])

        assert answer.status is SettleStatus.DONE
        assert await bench.counts() == {"dead": 2}


async def test_a_consumer_that_somebody_deleted_is_made_again(broker: NatsBroker, client: Client, queue: str) -> None:
    worker = await join(broker, queue)
    (consumer,) = (await ask(client, f"CONSUMER.NAMES.{queue}"))["consumers"]
    await ask(client, f"CONSUMER.DELETE.{queue}.{consumer}")
    with pytest.raises(BrokerUnavailable):
        await worker.fetch(1, wait=timedelta(seconds=1))
    await worker.heartbeat()
    await broker.publish(queue, [Message("", queue, b"1")])

    assert [each.message.body for each in await take(worker, 1)] == [b"1"]


async def test_a_dlq_that_somebody_deleted_is_begun_again(broker: NatsBroker, client: Client, queue: str) -> None:
    bench = bench_on(broker, queue)
    await bench.given_up(b"1")
    await ask(client, f"STREAM.DELETE.{queue}_dlq")
    worker = await bench.worker()
    await bench.publish(b"2")
    (delivery,) = await take(worker, 1)
    item = bench.give_up(delivery, worker)
    (refused,) = await worker.settle([item])
    (written,) = await worker.settle([item])

    assert (refused.status, written.status) == (SettleStatus.REFUSED, SettleStatus.DONE)
    assert await bench.dlq.length() == 1


async def test_a_retry_that_comes_before_its_time_waits_for_the_rest(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    """A server that was started again may be early."""
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    await bench.publish(b"1")
    (delivery,) = await take(worker, 1)
    (answer,) = await worker.settle([bench.retry(delivery, timedelta(seconds=2))])
    await client.request(delivery.token.reply, b"-NAK")
    early = await worker.fetch(1, wait=timedelta(0))
    (again,) = await take(worker, 1)

    assert not early
    assert answer.due_at is not None
    assert again.received_at >= answer.due_at


async def test_a_lease_is_renewed_by_those_who_are_at_work(broker: NatsBroker, queue: str) -> None:
    lease = timedelta(seconds=2)
    worker, other = await join(broker, queue, lease=lease), await join(broker, queue, "two", lease=lease)
    await broker.publish(queue, [Message("", queue, b"1")])
    (delivery,) = await take(worker, 1)
    for _ in range(6):
        await asyncio.sleep(0.5)
        assert not await worker.extend([delivery])
        assert await other.heartbeat() == 0

    assert [each.status for each in await worker.settle([Settlement(delivery)])] == ["done"]


async def test_a_story_that_is_over_does_not_come_back_with_a_server_that_was_killed(
    connect: Connect, fresh_nats: NatsServer, queue: str
) -> None:
    """Such a server forgets that a value was replaced: removing the last one alone would bring back the one before."""
    broker = connect(fresh_nats.url)
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    await bench.publish(*(b"%d" % number for number in range(50)))
    for outcome in (bench.retry, bench.retry, None):
        taken = await take(worker, 50)
        await worker.settle([each if outcome is None else outcome(each) for each in taken])
    before = await broker._office.book.under("story")  # noqa: SLF001
    await asyncio.to_thread(fresh_nats.kill)
    with pytest.raises(BrokerUnavailable):
        await worker.heartbeat()
    await asyncio.to_thread(fresh_nats.start)

    assert before == {}
    assert await broker._office.book.under("story") == {}  # noqa: SLF001
