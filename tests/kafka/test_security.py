"""A cluster with passwords, TLS and permissions; and one that goes away."""

import contextlib
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from redrive.brokers.kafka import KafkaBroker
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.message import Message
from redrive.core.outcome import RetryLater, Settlement
from tests.kafka.scenes import bench_on, join, take
from tests.servers.kafka import SecureKafkaServer

Connect = Callable[[str], KafkaBroker]

RIGHTS = {
    ResourceType.TOPIC: ("READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS", "DELETE"),
    ResourceType.GROUP: ("READ",),
    ResourceType.TRANSACTIONAL_ID: ("WRITE", "DESCRIBE"),
}
"""What docs/adapters/kafka.md says that a worker needs, beside Create and Describe on the cluster."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafkaServer]:
    with SecureKafkaServer(tmp_path_factory.mktemp("secure-kafka")) as server:
        permit(server, "ann")
        yield server


def permit(server: SecureKafkaServer, user: str) -> None:
    """What an administrator does for a worker."""
    bindings = [
        _binding(user, resource, name, right)
        for resource, rights in RIGHTS.items()
        for right in rights
        for name in (("redrive-",) if resource is ResourceType.TRANSACTIONAL_ID else ("orders-", "redrive..", "shop"))
    ]
    whole = [
        AclBinding(
            ResourceType.BROKER,
            "kafka-cluster",
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            getattr(AclOperation, right),
            AclPermissionType.ALLOW,
        )
        for right in ("CREATE", "DESCRIBE", "DESCRIBE_CONFIGS")
    ]
    admin = AdminClient({"bootstrap.servers": server.address})
    for done in admin.create_acls([*bindings, *whole]).values():
        done.result(30)


def _binding(user: str, resource: ResourceType, name: str, right: str) -> AclBinding:
    return AclBinding(
        resource,
        name,
        ResourcePatternType.PREFIXED,
        f"User:{user}",
        "*",
        getattr(AclOperation, right),
        AclPermissionType.ALLOW,
    )


async def test_with_a_password_tls_and_the_rights_of_the_documents_everything_works(
    cluster: SecureKafkaServer, connect: Connect, queue: str
) -> None:
    broker = connect(cluster.url_of("ann", "s3cret"))
    bench = bench_on(broker, queue)
    await broker.publish(queue, [Message("", queue, b"1"), Message("", queue, b"2")])
    worker = await bench.worker()
    first, second = await take(worker, 2)
    await worker.settle([bench.give_up(first, worker), Settlement(second, RetryLater(0))])
    (again,) = await take(worker, 1)
    await worker.settle([again])
    await worker.heartbeat()
    (entry,) = await broker.dead_letters(queue).peek()
    await broker.dead_letters(queue).redrive(entry.entry_id)
    (redriven,) = await take(worker, 1)
    findings = await broker.diagnose()

    assert (redriven.message.body, redriven.generation) == (b"1", 1)
    assert findings
    await worker.aclose()


async def test_a_user_without_permission_is_told_so(cluster: SecureKafkaServer, connect: Connect, queue: str) -> None:
    broker = connect(cluster.url_of("bob", "pa:ss@word"))

    for call in (broker.publish(queue, [Message("", queue, b"1")]), join(broker, queue), broker.diagnose()):
        with pytest.raises(BrokerError, match="does not permit") as refused:
            await call
        assert not isinstance(refused.value, BrokerUnavailable)


async def test_a_wrong_password_is_told_as_one_and_not_repeated(
    cluster: SecureKafkaServer, connect: Connect, queue: str
) -> None:
    broker = connect(cluster.url_of("ann", "wr0ng"))

    with pytest.raises(BrokerError, match="does not accept this user and password") as refused:
        await broker.publish(queue, [Message("", queue, b"1")])

    assert "wr0ng" not in str(refused.value)


async def test_a_certificate_of_nobody_one_trusts_is_told_as_one(
    cluster: SecureKafkaServer, connect: Connect, queue: str
) -> None:
    url = cluster.url_of("ann", "s3cret").partition("&ssl.ca.location")[0]

    with pytest.raises(BrokerError, match="certificate"):
        await connect(url).publish(queue, [Message("", queue, b"1")])


async def test_a_cluster_that_goes_away_is_unavailable_and_used_again_when_it_is_back(
    cluster: SecureKafkaServer, connect: Connect, queue: str
) -> None:
    broker = connect(cluster.url_of("ann", "s3cret") + "&message.timeout.ms=3000&socket.timeout.ms=2000")
    await broker.publish(queue, [Message("", queue, b"1")])
    worker = await join(broker, queue)
    (delivery,) = await take(worker, 1)
    cluster.kill()

    with pytest.raises(BrokerUnavailable):
        await broker.publish(queue, [Message("", queue, b"2")])
    cluster.start()

    await _published(broker, Message("", queue, b"3"))
    await worker.settle([delivery])
    taken = {one.message.body for one in await take(worker, 1)}
    assert taken <= {b"2", b"3"}  # what nobody has confirmed may be there
    await worker.aclose()


async def _published(broker: KafkaBroker, message: Message) -> None:
    """Publish as soon as there is service again: the cluster answers before its partitions have a leader."""
    for _ in range(20):
        with contextlib.suppress(BrokerUnavailable):
            await broker.publish(message.queue, [message])
            return
    pytest.fail("there is no service after the cluster has come back")
