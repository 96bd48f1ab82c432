"""Queues belong to others too: what they publish is taken, and what the server has dead-lettered is collected."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import amqp  # type: ignore[import-untyped]

from redrive.core.outcome import RetryLater, Settlement
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Options
from redrive.core.query import Query
from redrive.core.reason import Reason
from redrive.stores.memory import MemoryStore
from redrive.wiring import collector
from tests.rabbitmq.conftest import PATIENCE, Scene


async def test_what_anybody_publishes_to_the_queue_is_handled_with_its_headers_and_properties(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.foreign(b"1", message_id="m-1", content_type="text/plain", headers={"colour": "red", "size": 7})
    message = (await scene.take(worker)).message

    assert message.body == b"1"
    assert message.headers == (
        ("colour", b"red"),
        ("size", b"7"),
        ("content-type", b"text/plain"),
        ("message-id", b"m-1"),
    )
    assert "m-1" not in message.id


async def test_one_id_for_two_messages_is_two_messages(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.foreign(b"1", message_id="same")
    await scene.foreign(b"2", message_id="same")
    ids = {(await scene.take(worker)).message.id for _ in range(2)}

    assert len(ids) == 2


async def test_a_message_without_an_id_gets_one_before_it_is_handed_out_and_keeps_it(scene: Scene) -> None:
    worker = await scene.worker()
    await asyncio.to_thread(_publish_without_an_id, scene)
    first = await scene.take(worker)
    await worker.release([first])
    again = await scene.take(worker)

    assert first.message == again.message
    assert (first.message.body, first.message.id != "") == (b"no id", True)


def _publish_without_an_id(scene: Scene) -> None:
    with amqp.Connection(f"127.0.0.1:{urlsplit(scene.url).port}") as connection:
        channel = connection.channel()
        channel.basic_publish(amqp.Message(b"no id"), routing_key=scene.queue)


async def test_a_retry_of_a_foreign_message_is_the_same_message(scene: Scene) -> None:
    worker = await scene.worker()
    at = datetime(2030, 1, 1, tzinfo=UTC)
    await scene.foreign(b"1", message_id="m-1", correlation_id="c-7", timestamp=at, headers={"b": "2", "a": "1"})
    first = await scene.take(worker)
    await worker.settle([Settlement(first, RetryLater(0))])
    again = await scene.take(worker)

    assert (again.message, again.failures) == (first.message, 1)


async def test_what_the_server_has_dead_lettered_is_a_letter_that_goes_back_to_its_queue(scene: Scene) -> None:
    dlq = f"{scene.queue}.dlq"
    arguments: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dlq}
    await scene.channel.queue_declare(scene.queue, durable=True, arguments=arguments)
    await scene.channel.queue_declare(dlq, durable=True)
    await scene.foreign(b"poison", message_id="m-1", headers={"colour": "red"})
    found = await scene.channel.basic_get(scene.queue)
    await scene.channel.basic_reject(found.delivery_tag or 0, requeue=False)
    letters = scene.broker.dead_letters(scene.queue)
    while not await letters.length():
        pass
    (entry,) = await letters.peek()
    letter = entry.letter

    assert (letter.queue, letter.reason, letter.error_type) == (scene.queue, Reason.REJECTED, "x-death.rejected")
    assert (letter.payload, letter.headers) == (b"poison", (("colour", b"red"), ("message-id", b"m-1")))
    assert json.loads(json.dumps(letter.context))["x-death"][0]["queue"] == scene.queue

    await letters.redrive(entry.entry_id)
    again = await scene.take(await scene.worker())
    assert (again.message.body, again.message.headers) == (letter.payload, letter.headers)


async def test_a_collector_takes_what_the_server_has_dead_lettered(scene: Scene) -> None:
    dlq = f"{scene.queue}.dlq"
    await scene.channel.queue_declare(dlq, durable=True)
    await scene.foreign(b"poison", queue=dlq, message_id="m-1", headers={"x-death": [{"queue": scene.queue}]})
    mover = await scene.broker.subscribe(dlq, group="redrive", options=Options(owner="c", moves=True))
    (delivery,) = await mover.fetch(1, wait=PATIENCE)
    await mover.settle([Settlement(delivery)])

    assert json.loads(dict(delivery.message.headers)["x-death"]) == [{"queue": scene.queue}]
    assert await scene.broker.dead_letters(scene.queue).length() == 0


async def test_a_message_that_a_queue_of_others_rejects_ends_in_the_store_with_its_queue_and_reason(
    scene: Scene,
) -> None:
    exchange, dead = f"{scene.queue}-dlx", f"{scene.queue}-dead"
    await scene.channel.exchange_declare(exchange, exchange_type="fanout", durable=True)
    await scene.channel.queue_declare(dead, durable=True)
    await scene.channel.queue_bind(dead, exchange)
    await scene.channel.queue_declare(scene.queue, durable=True, arguments={"x-dead-letter-exchange": exchange})
    await scene.foreign(b"poison", message_id="m-1", headers={"colour": "red"})
    found = await scene.channel.basic_get(scene.queue)
    await scene.channel.basic_reject(found.delivery_tag or 0, requeue=False)
    store = MemoryStore(clock=scene.clock)
    async with collector(scene.broker, store, queues=[], dlqs=[dead], clock=scene.clock) as collecting:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            while not collecting.collected.new:  # noqa: ASYNC110 - it is in the store then
                await asyncio.sleep(0.01)
    (stored,) = (await store.read(Query(), limit=10, most=10**6)).rows

    assert (stored.letter.queue, stored.letter.reason) == (scene.queue, Reason.REJECTED)
    assert (stored.letter.payload, dict(stored.letter.headers)["colour"]) == (b"poison", b"red")
    assert await scene.broker.dead_letters(scene.queue, place=DeadLetterPlace(name=dead)).length() == 0
