"""What the doctor finds on a real server."""

from nats.aio.client import Client

from redrive.brokers.nats import NatsBroker
from redrive.core.ports import Finding
from tests.nats.scenes import ask, begin_stream, bench_on, join


async def _found(broker: NatsBroker, check: str, *, about: str) -> list[Finding]:
    return [one for one in await broker.diagnose() if one.check == check and about in one.found]


async def test_a_stream_in_memory_is_told(broker: NatsBroker, client: Client, queue: str) -> None:
    await ask(client, f"STREAM.CREATE.{queue}", name=queue, subjects=[queue], storage="memory")
    await join(broker, queue)

    assert [one.level for one in await _found(broker, "storage", about=queue)] == ["fail"]
    await ask(client, f"STREAM.DELETE.{queue}")


async def test_a_stream_that_pushes_messages_out_is_told(broker: NatsBroker, client: Client, queue: str) -> None:
    await begin_stream(client, queue, queue, max_msgs=100, max_age=3600 * 10**9)
    await join(broker, queue)

    assert [one.level for one in await _found(broker, "discard", about=queue)] == ["fail"]
    assert [one.level for one in await _found(broker, "retention", about=queue)] == ["warn"]


async def test_a_consumer_to_which_somebody_gave_a_last_delivery_is_told(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    await join(broker, queue)
    (consumer,) = (await ask(client, f"CONSUMER.LIST.{queue}"))["consumers"]
    config = {**consumer["config"], "max_deliver": 5, "max_ack_pending": 50}
    await ask(client, f"CONSUMER.CREATE.{queue}.{consumer['name']}", stream_name=queue, config=config, action="update")

    assert [one.level for one in await _found(broker, "max_deliver", about=queue)] == ["fail"]
    assert [one.level for one in await _found(broker, "max_ack_pending", about=queue)] == ["warn"]


async def test_streams_of_our_own_have_nothing_to_be_told_but_their_one_copy(broker: NatsBroker, queue: str) -> None:
    await bench_on(broker, queue).given_up(b"1")
    about_it = [one for one in await broker.diagnose() if queue in one.found and one.level != "ok"]

    assert {one.check for one in about_it} <= {"replicas"}
    assert [one.level for one in await _found(broker, "dedupe", about=queue)] == ["ok"]
