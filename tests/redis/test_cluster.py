"""On a cluster, everything of a queue is in one slot."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.core.errors import BrokerUnavailable, ConfigError, LetterNotFound
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, Settlement
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Options
from redrive.core.redrive import SendBack
from tests.redis.letters import letter
from tests.servers.redis import facts
from tests.servers.redis_cluster import RedisCluster
from tests.servers.server import until

WAIT = timedelta(seconds=5)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    with RedisCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def broker(cluster: RedisCluster, connect: Callable[[str], RedisBroker]) -> RedisBroker:
    cluster.flush()
    return connect(cluster.url)


def keys_by_node(cluster: RedisCluster) -> list[set[str]]:
    return [set(map(str, node.ask("KEYS", "*"))) for node in cluster.primaries]  # type: ignore[call-overload]


@pytest.mark.parametrize("queue", ["orders", "{shop}orders", "orders.{eu}"])
async def test_a_message_lives_dies_and_comes_back(broker: RedisBroker, cluster: RedisCluster, queue: str) -> None:
    worker = await broker.subscribe(queue, group="shop", options=Options(owner="one"))
    await broker.publish(queue, [Message("", queue, b"1")])
    (taken,) = await worker.fetch(1, wait=WAIT)
    await worker.settle([Settlement(taken, GiveUp(), letter=letter(queue, payload=b"1"))])
    dlq = broker.dead_letters(queue)
    (entry,) = await dlq.peek()
    await dlq.redrive(entry.entry_id)
    (again,) = await worker.fetch(1, wait=WAIT)
    await worker.heartbeat()

    home = cluster.number_of(queue)
    assert (again.message.body, again.letter_id, again.generation) == (b"1", "a1", 1)
    assert [sum("redrive" in key for key in keys - {"redrive:queues"}) > 0 for keys in keys_by_node(cluster)] == [
        number == home for number in range(3)
    ]
    assert set(await broker.queues()) == {(queue, "shop"), (dlq.name, "")}
    assert (await broker.depth(queue, group="shop")).in_flight == 1
    assert len(await broker.alive(queue, group="shop")) == 1


async def test_the_dlq_is_in_the_slot_of_its_queue(broker: RedisBroker) -> None:
    assert broker.dead_letters("orders").name == "{orders}:dlq"
    assert broker.dead_letters("{shop}orders").name == "{shop}orders:dlq"


async def test_a_dlq_in_another_slot_is_a_mistake_that_says_what_to_do(broker: RedisBroker) -> None:
    place = DeadLetterPlace(name="dead")
    with pytest.raises(ConfigError, match=r"^dlq\.name: .* put \{orders\} into the name$"):
        await broker.subscribe("orders", group="shop", options=Options(owner="one", dlq=place))
    with pytest.raises(ConfigError, match=r"^dlq\.name: "):
        broker.dead_letters("orders", place=place)


async def test_an_output_in_another_slot_is_refused(broker: RedisBroker) -> None:
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    await broker.publish("orders", [Message("", "orders", b"1")])
    (taken,) = await worker.fetch(1, wait=WAIT)
    refused = await worker.settle([Settlement(taken, output=Message("", "paid", b"1"))])
    done = await worker.settle([Settlement(taken, output=Message("", "paid.{orders}", b"1"))])

    assert [answer.status for answer in (*refused, *done)] == ["refused", "done"]
    assert "put {orders} into the name" in refused[0].why


async def test_thousands_of_headers_are_put_out_and_delayed(broker: RedisBroker) -> None:
    headers = tuple([(f"h{number}", b"%d" % number) for number in range(5000)])
    worker = await broker.subscribe("orders", group="shop", options=Options(owner="one"))
    await broker.publish("orders", [Message("", "orders", b"1", headers)], delay=timedelta(milliseconds=1))
    (taken,) = await worker.fetch(1, wait=WAIT)
    output = Message("", "paid.{orders}", b"1", headers)
    (answer,) = await worker.settle([Settlement(taken, output=output)])
    next_worker = await broker.subscribe("paid.{orders}", group="shop", options=Options(owner="two"))
    (put_out,) = await next_worker.fetch(1, wait=WAIT)

    assert answer.status == "done"
    assert taken.message.headers == put_out.message.headers == headers


async def test_a_consumer_whose_output_is_in_another_slot_does_not_start(broker: RedisBroker) -> None:
    with pytest.raises(ConfigError, match=r"^output: .* put \{orders\} into the name$"):
        await broker.subscribe("orders", group="shop", options=Options(owner="one", output="paid"))


async def test_letters_of_queues_in_several_slots_are_sent_back(broker: RedisBroker) -> None:
    queues = ["orders", "payments", "mails"]
    items = [SendBack("a1", 1, queue, b"1", group="shop") for queue in queues]
    ids = await broker.send_back(items)

    assert await broker.send_back(items) == ids
    assert [(await broker.depth(queue, group="shop")).waiting for queue in queues] == [1, 1, 1]


async def test_a_letter_of_a_queue_in_another_slot_goes_home(broker: RedisBroker, cluster: RedisCluster) -> None:
    elsewhere = next(name for name in map(str, range(9)) if cluster.number_of(name) != cluster.number_of("orders"))
    dlq = broker.dead_letters("orders")
    await dlq.send(letter(elsewhere))
    (entry,) = await dlq.peek()
    await dlq.redrive(entry.entry_id)

    assert (await broker.depth(elsewhere, group="shop")).waiting == 1
    assert await dlq.length() == 0
    with pytest.raises(LetterNotFound):
        await dlq.redrive(entry.entry_id)


async def test_the_doctor_looks_at_every_server_that_has_a_queue(broker: RedisBroker) -> None:
    for queue in ("orders", "payments", "mails", "1", "2", "3"):
        await broker.publish(queue, [Message("", queue, b"1")])
    findings = await broker.diagnose()

    assert len({finding.found for finding in findings if finding.check == "version"}) == 3
    assert "add durability=wait:1 to the URL" in {finding.advice for finding in findings}


async def test_a_queue_whose_server_is_away_is_unavailable_and_found_again(
    broker: RedisBroker, cluster: RedisCluster
) -> None:
    node = cluster.primaries[cluster.number_of("orders")]
    await broker.publish("orders", [Message("", "orders", b"1")])
    node.kill()
    with pytest.raises(BrokerUnavailable):
        await broker.publish("orders", [Message("", "orders", b"2")])
    node.start()
    until(lambda: facts(node.ask("CLUSTER", "INFO"))["cluster_state"] == "ok", what="the cluster well again")
    await broker.publish("orders", [Message("", "orders", b"3")])
