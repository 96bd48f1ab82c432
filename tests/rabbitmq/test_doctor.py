"""What the doctor says of a server: each fault is found, and healthy parts are not blamed for it."""

from redrive.brokers.rabbitmq import RabbitBroker
from redrive.core.message import Message
from redrive.core.ports import Finding
from tests.rabbitmq.conftest import Scene


async def found(broker: RabbitBroker, check: str) -> list[Finding]:
    """What it says of one thing."""
    return [finding for finding in await broker.diagnose() if finding.check == check]


async def test_a_classic_queue_is_named_and_a_quorum_queue_is_not(scene: Scene) -> None:
    classic, quorum = f"{scene.queue}-classic", f"{scene.queue}-quorum"
    await scene.channel.queue_declare(classic, durable=True)
    for queue in (classic, quorum):
        await scene.broker.publish(queue, [Message("", queue, b"1")])
    findings = await found(scene.broker, "queues")

    assert [finding.level for finding in findings if classic in finding.found] == ["warn"]
    assert not [finding for finding in findings if quorum in finding.found]


async def test_letters_that_nobody_collects_are_counted(scene: Scene) -> None:
    dlq = f"{scene.queue}.dlq"
    await scene.broker.publish(dlq, [Message("", dlq, b"1"), Message("", dlq, b"2")])
    (before,) = await found(scene.broker, "dead letters")
    await scene.channel.queue_purge(dlq)
    (after,) = await found(scene.broker, "dead letters")

    assert (before.level, "redrive collect" in before.advice) == ("warn", True)
    assert int(before.found.split()[0]) - (int(after.found.split()[0]) if after.level == "warn" else 0) == 2


async def test_a_slow_heartbeat_is_a_warning(scene: Scene) -> None:
    for seconds, level in ((61, "warn"), (60, "ok")):
        broker = RabbitBroker(f"{scene.url.partition('?')[0]}?heartbeat={seconds}", clock=scene.clock)
        (finding,) = await found(broker, "heartbeat")
        await broker.aclose()

        assert finding.level == level
