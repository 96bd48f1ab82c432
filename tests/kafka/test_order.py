"""Keys: one after another, and started in their order."""

from redrive.brokers.kafka import KafkaBroker
from redrive.core.duration import NOW
from redrive.core.message import Message
from redrive.core.outcome import Settlement
from tests.kafka.scenes import bench_on, join, take


def keyed(queue: str, *bodies: bytes) -> list[Message]:
    return [Message("", queue, body, key=body[:1]) for body in bodies]


async def test_messages_of_one_key_run_one_after_another_and_others_beside_them(
    broker: KafkaBroker, queue: str
) -> None:
    worker = await join(broker, queue)
    await broker.publish(queue, keyed(queue, b"a1", b"a2", b"b1", b"a3"))
    first = await take(worker, 2)
    nothing = await worker.fetch(10, wait=NOW)
    seen = []
    for _ in range(2):
        await worker.settle([Settlement(each) for each in first if each.message.key == b"a"])
        first = await take(worker, 1)
        seen.append(first[0].message.body)

    assert list(nothing) == []
    assert seen == [b"a2", b"a3"]


async def test_a_message_handed_back_comes_before_the_next_of_its_key(broker: KafkaBroker, queue: str) -> None:
    worker = await join(broker, queue)
    await broker.publish(queue, keyed(queue, b"a1", b"a2"))
    (first,) = await take(worker, 1)
    assert not await worker.fetch(10, wait=NOW)
    await worker.release([first])
    (again,) = await take(worker, 1)

    assert again.message.body == b"a1"


async def test_messages_of_one_key_start_in_their_order_after_the_first_was_handed_back(
    broker: KafkaBroker, queue: str
) -> None:
    worker = await join(broker, queue)
    await broker.publish(queue, keyed(queue, b"a1", b"a2", b"a3"))
    first = await take(worker, 1)
    assert not await worker.fetch(10, wait=NOW)  # the others wait behind it
    await worker.release(first)
    seen = []
    for _ in range(3):
        taken = await take(worker, 1)
        seen += [each.message.body for each in taken]
        await worker.settle([Settlement(each) for each in taken])

    assert seen == [b"a1", b"a2", b"a3"]


async def test_a_retry_lets_the_next_of_its_key_go_on(broker: KafkaBroker, queue: str) -> None:
    bench = bench_on(broker, queue)
    worker = await join(broker, queue)
    await broker.publish(queue, keyed(queue, b"a1", b"a2"))
    (first,) = await take(worker, 1)
    await worker.settle([bench.retry(first, bench.lease)])
    (second,) = await take(worker, 1)

    assert second.message.body == b"a2"


async def test_only_the_lowest_unfinished_offset_is_committed_and_what_is_done_beyond_it_is_not_run_again(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    worker = await join(broker, queue)
    await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(5)])
    taken = await take(worker, 5)
    await worker.settle([Settlement(each) for each in taken if each.message.body in (b"1", b"3")])
    kept = [each for each in taken if each.message.body not in (b"1", b"3")]
    await worker.release(kept)
    await worker.aclose()
    again = await take(await join(KafkaBroker(kafka_url, clock=bench_on(broker, queue).clock), queue), 3)

    assert sorted(each.message.body for each in again) == [b"0", b"2", b"4"]
