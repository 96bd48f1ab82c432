"""Three brokers: what is begun there, what the doctor finds, and what happens while most of them are gone."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from redrive.app import App
from redrive.brokers.kafka import KafkaBroker
from redrive.brokers.kafka.names import ALIVE, LEDGER, book_of, lane_of
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerUnavailable
from redrive.core.event import BrokerFaulted
from redrive.core.message import Message
from tests.kafka.scenes import begin_topic, join, server_of
from tests.kafka.shop import Shop
from tests.servers.kafka_cluster import GROUPS, NUMBERS, TRANSACTIONS, KafkaCluster
from tests.unit.cli import conftest as cli
from tests.unit.worker.test_telling import Heard

EVERYWHERE = {*NUMBERS}
MANY = 100_000  # more than are sent while brokers are struck
HASTY = "&message.timeout.ms=3000"  # who publishes hears soon that nobody takes it


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """For all tests here: who strikes it waits until it is whole again."""
    with KafkaCluster(tmp_path_factory.mktemp("kafka-cluster")) as cluster:
        yield cluster


@pytest.fixture
def broker(cluster: KafkaCluster, connect: Callable[[str], KafkaBroker]) -> KafkaBroker:
    return connect(cluster.url)


def places_of(url: str, topic: str) -> list[set[int]]:
    """On which brokers each partition of a topic is."""
    found = AdminClient({"bootstrap.servers": server_of(url)}).list_topics(timeout=30).topics
    return [set(each.replicas) for each in found[topic].partitions.values()]


def own_settings(url: str, topic: str) -> dict[str, str]:
    """What a topic says itself, whatever its cluster says."""
    admin, wanted = AdminClient({"bootstrap.servers": server_of(url)}), [ConfigResource(ResourceType.TOPIC, topic)]
    (answer,) = admin.describe_configs(wanted, request_timeout=30).values()
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return {name: entry.value for name, entry in answer.result().items() if ConfigSource(entry.source) is own}


async def test_whatever_is_begun_there_is_on_all_three_and_acknowledged_by_two(
    cluster: KafkaCluster, queue: str
) -> None:
    app = App(cluster.url, name="shop")

    @app.consumer(queue, retry=[0])
    async def handle(delivery: Delivery) -> None:
        if not delivery.generation:
            raise ValueError("not yet")

    heard = Heard(app)
    async with app.worker():
        await app.publish(queue, b"1")
        await heard.ended(1)
        letters = app.broker.dead_letters(queue)
        (entry,) = await letters.peek()
        await letters.redrive(entry.entry_id)
        await heard.ended(2)
    ours = (f"{queue}.dlq", f"{queue}.outcomes", lane_of(queue, "shop"), book_of(queue, "shop"), LEDGER, ALIVE)

    for topic in ours:
        assert all(places == EVERYWHERE for places in places_of(cluster.url, topic)), topic
        assert own_settings(cluster.url, topic).get("min.insync.replicas") == "2", topic
    assert len(places_of(cluster.url, f"{queue}.dlq")) == 3
    assert places_of(cluster.url, queue) == [EVERYWHERE]  # by the cluster's own default, as it was begun here
    assert "min.insync.replicas" not in own_settings(cluster.url, queue)


async def test_the_doctor_finds_nothing_until_a_queue_has_one_copy_or_one_is_enough_for_an_answer(
    cluster: KafkaCluster, broker: KafkaBroker, queue: str
) -> None:
    async def findings() -> dict[str, tuple[str, str]]:
        return {each.check: (each.level, each.found) for each in await broker.diagnose()}

    await broker.publish(queue, [Message("", queue, b"1")])
    await join(broker, queue)
    before = await findings()
    begin_topic(cluster.url, f"{queue}-alone")
    begin_topic(cluster.url, f"{queue}-few", 1, 3, **{"min.insync.replicas": "1"})
    await join(broker, f"{queue}-alone")
    await join(broker, f"{queue}-few")
    after = await findings()
    admin = AdminClient({"bootstrap.servers": cluster.address})
    for done in admin.delete_topics([f"{queue}-alone", f"{queue}-few"]).values():
        done.result(30)

    assert {level for level, _ in before.values()} == {"ok"}
    assert {"replication", "offsets", "size"} <= before.keys()
    assert after["replication"] == ("warn", f"one copy only: {queue}-alone")
    assert after["min.insync.replicas"] == ("warn", f"is 1 for {queue}-few")
    assert {check for check, (level, _) in after.items() if level != "ok"} == {"replication", "min.insync.replicas"}


async def test_the_doctor_says_that_copies_are_missing_while_a_broker_is_gone(
    cluster: KafkaCluster, broker: KafkaBroker, queue: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def doctor() -> dict[str, str]:
        said = cli.Shop(tmp_path, capsys).run("doctor", "--json", "--broker", cluster.url)
        assert said.status == 0
        return {found["check"]: found["level"] for found in map(json.loads, said.lines)}

    await broker.publish(queue, [Message("", queue, b"1")])
    await join(broker, queue)
    gone = cluster.leader_of(queue)
    cluster.kill(gone)
    assert cluster.leader_of(queue) != gone
    meanwhile = await asyncio.to_thread(doctor)
    cluster.start(gone)
    cluster.wait_until_whole()
    afterwards = await asyncio.to_thread(doctor)

    assert (meanwhile["replication"], meanwhile["in sync"]) == ("ok", "warn")
    assert afterwards["replication"] == "ok"
    assert "in sync" not in afterwards


async def test_while_a_leader_and_the_coordinator_are_killed_every_message_is_done_or_dies_once(
    cluster: KafkaCluster, queue: str
) -> None:
    shop = Shop(f"{cluster.url}&partitions=4", queue)
    strikes = [lambda: cluster.leader_of(queue), lambda: cluster.leader_of(TRANSACTIONS)]
    shop.go.set()
    async with shop.app.worker():
        publishing = asyncio.create_task(shop.publish(MANY))
        for find in strikes:
            await shop.until_done(50)
            number = await asyncio.to_thread(find)
            cluster.kill(number)
            await shop.until_done(50)
            await asyncio.to_thread(cluster.start, number)
            await asyncio.to_thread(cluster.wait_until_whole)
        shop.enough()
        await publishing
        await shop.until_drained()
        account = await shop.account()

    print(account)
    assert account.wrong == {}
    assert len(shop.sent) > 400


async def test_with_one_of_three_nothing_is_done_and_that_is_said_and_with_all_of_them_all_of_it_is(
    cluster: KafkaCluster, queue: str
) -> None:
    shop = Shop(cluster.url + HASTY, queue)
    async with shop.app.worker():
        await shop.publish(60)
        await shop.begun.wait()
        others = EVERYWHERE - {cluster.leader_of(GROUPS)}
        cluster.kill(*others)
        shop.go.set()
        await shop.until_told(BrokerFaulted)
        with pytest.raises(BrokerUnavailable):
            await shop.app.publish(queue, b"is done, or never was")
        settled_meanwhile = list(shop.heard.settled)
        shop.unsure.add(b"is done, or never was")
        await asyncio.to_thread(cluster.start, *others)
        await shop.until_drained()
        account = await shop.account()

    print(account)
    assert account.wrong == {}
    assert settled_meanwhile == []
    assert len(shop.sent) == 60
