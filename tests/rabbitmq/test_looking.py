"""A look at a DLQ: complete and in order, though what was looked at goes back in an order of the server's own."""

from redrive.core.message import Message
from tests.rabbitmq.conftest import Scene

LETTERS = 25  # from ten on the server has another order than we


async def write(scene: Scene, *bodies: bytes) -> None:
    """Write letters as others do."""
    dlq = f"{scene.queue}.dlq"
    await scene.broker.publish(dlq, [Message("", dlq, b"the first")])  # so that the queue is there
    await scene.channel.queue_purge(dlq)
    for body in bodies:
        await scene.foreign(body, queue=dlq, message_id=body.decode())


async def pages(scene: Scene, size: int) -> list[bytes]:
    """The payloads of all letters, a page at a time; twice as many pages as there can be are enough for any order."""
    dlq = scene.broker.dead_letters(scene.queue)
    found = list(await dlq.peek(size))
    for _ in range(2 * LETTERS):
        more = (await dlq.peek(size, start=found[-1].entry_id))[1:]
        if not more:
            break
        found += more
    return [entry.letter.payload or b"" for entry in found]


async def test_a_dlq_is_paged_through_once_and_in_order_however_often_it_was_looked_at(scene: Scene) -> None:
    bodies = [b"%02d" % number for number in range(LETTERS)]
    await write(scene, *bodies)

    whole = await pages(scene, LETTERS)

    assert sorted(whole) == bodies
    for size in (7, 3, 20):
        assert await pages(scene, size) == whole


async def test_letters_that_are_alike_are_entries_of_their_own(scene: Scene) -> None:
    await write(scene, b"same", b"same", b"same")
    dlq = scene.broker.dead_letters(scene.queue)
    first, second, third = await dlq.peek()

    assert len({first.entry_id, second.entry_id, third.entry_id}) == 3
    await dlq.remove(second.entry_id)
    assert await pages(scene, 2) == [b"same", b"same"]
