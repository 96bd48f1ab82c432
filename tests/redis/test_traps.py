"""Entries that are trimmed or deleted while messages are worked on: nothing of it passes in silence."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.keys import GroupKeys, QueueKeys
from redrive.core.message import Message
from redrive.core.outcome import GiveUp, RetryLater, Settlement, SettleStatus
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Obituary
from tests.redis.letters import letter
from tests.redis.scenes import HOLD, LATER, SOON, WAIT, begin, cut_off, fetch_when_due, join


@pytest.fixture
def keys(queue: str) -> GroupKeys:
    return QueueKeys(queue).group("shop")


async def test_what_a_dead_worker_held_is_found_behind_hundreds_that_are_scheduled(
    broker: RedisBroker, queue: str
) -> None:
    worker = await join(broker, queue)
    await broker.publish(queue, [Message("", queue, b"later")] * 250)
    taken = [delivery for _ in range(5) for delivery in await worker.fetch(50, wait=WAIT)]
    await worker.settle([Settlement(delivery, RetryLater(LATER)) for delivery in taken])
    dead = await join(broker, queue, "dead")
    await broker.publish(queue, [Message("", queue, b"1")] * 3)
    await dead.fetch(3, wait=WAIT)
    other = await join(broker, queue, "two", obituary=Obituary("dead", "killed"))

    assert (len(taken), await other.heartbeat()) == (250, 3)


@pytest.mark.parametrize("place", ["in hand", "released", "suspect"])
async def test_what_is_trimmed_where_no_copy_is_becomes_a_letter_that_says_so(
    place: str, broker: RedisBroker, queue: str, client: Any
) -> None:
    worker, delivery = await begin(broker, queue)
    if place == "released":
        await worker.release([delivery])
    other = await join(broker, queue, "two", obituary=Obituary("one", "killed"))
    if place == "suspect":
        await other.heartbeat()
    cut_off(client, queue)
    await other.fetch(10, wait=timedelta())
    found = await other.fetch_suspect()
    (entry,) = await broker.dead_letters(queue).peek()

    assert (found, entry.letter.reason, entry.letter.original_message_id) == (None, "vanished", delivery.message.id)
    assert (await broker.depth(queue, group="shop")).in_flight == 0


async def test_thousands_of_suspects_that_are_trimmed_become_letters(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    dead = await join(broker, queue, "dead")
    await broker.publish(queue, [Message("", queue, b"1")] * 1100)
    for _ in range(11):
        await dead.fetch(100, wait=WAIT)
    other = await join(broker, queue, "two", obituary=Obituary("dead", "killed"))
    assert await other.heartbeat() == 1100
    cut_off(client, queue)

    assert await other.fetch_suspect() is None
    assert await broker.dead_letters(queue).length() == 1100


@pytest.mark.parametrize("place", ["retrying", "held"])
async def test_what_is_trimmed_where_a_copy_is_goes_on_with_it(
    place: str, broker: RedisBroker, queue: str, client: Any
) -> None:
    worker, delivery = await begin(broker, queue, dlq=HOLD if place == "held" else DeadLetterPlace())
    outcome = GiveUp("no") if place == "held" else RetryLater(SOON)
    await worker.settle([Settlement(delivery, outcome)])
    cut_off(client, queue)
    await broker.free(queue, group="shop")
    (again,) = await fetch_when_due(worker)

    assert again.message == delivery.message
    assert again.failures == (1 if place == "retrying" else 0)


async def test_nothing_is_left_of_a_trimmed_message_that_was_handled(
    broker: RedisBroker, queue: str, client: Any, keys: GroupKeys
) -> None:
    worker, delivery = await begin(broker, queue)
    cut_off(client, queue)
    await worker.extend([delivery])
    await worker.settle([delivery])
    await worker.heartbeat()

    assert not client.exists(keys.stories, keys.due)


async def test_a_trimmed_message_that_is_to_be_held_is_held_in_the_end(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    worker, delivery = await begin(broker, queue, dlq=HOLD)
    cut_off(client, queue)
    first = await worker.settle([Settlement(delivery, GiveUp("no"))])
    (again,) = await worker.fetch(1, wait=WAIT)
    second = await worker.settle([Settlement(again, GiveUp("no"))])

    assert [answer.status for answer in [*first, *second]] == [SettleStatus.DONE] * 2
    assert again.message == delivery.message
    assert (await broker.depth(queue, group="shop")).held == 1


async def test_a_worker_that_was_given_up_has_not_written_the_letter_of_what_vanished(
    broker: RedisBroker, queue: str, client: Any
) -> None:
    zombie, delivery = await begin(broker, queue)
    cut_off(client, queue)
    other = await join(broker, queue, "two", obituary=Obituary("one", "killed"))
    await other.heartbeat()
    (entry,) = await broker.dead_letters(queue).peek()
    own = replace(letter(queue), letter_id=entry.letter.letter_id)
    (answer,) = await zombie.settle([Settlement(delivery, GiveUp("no"), letter=own)])

    assert answer.status is SettleStatus.LOST
