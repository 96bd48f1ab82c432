"""Calls that the server has carried out and whose answer never came: made again, they give the answer."""

import contextlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
import redis

from redrive.brokers.redis import RedisBroker
from redrive.brokers.redis.scripts import script
from redrive.brokers.redis.wire import Value, Wire
from redrive.core.delivery import Delivery
from redrive.core.errors import BrokerUnavailable
from redrive.core.message import Message
from redrive.core.outcome import ACK, GiveUp, Outcome, RetryLater, Settlement, SettleStatus
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Obituary, Options, Subscription
from tests.redis.letters import letter

NOW = timedelta(0)
WAIT = timedelta(seconds=1)
SOON = timedelta(milliseconds=1)
DEAD = Obituary("dead", "killed by SIGKILL")
WRITTEN = DeadLetterPlace()

Cut = Callable[[str], None]


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Cut:
    """Let the next answer to a command, or to a script by its name, be the last thing that a connection carries."""
    calls = Wire.calls
    names: list[str] = []

    async def cut_calls(wire: Wire, commands: Sequence[Sequence[Value]]) -> list[Any]:
        answers = await calls(wire, commands)
        for name in names:
            signs = {name} if name.isupper() else {script(name).sha, script(name).source}
            if any(signs.intersection(command[:2]) for command in commands) and not _refused(answers):
                names.remove(name)
                raise BrokerUnavailable("the answer was cut off")
        return answers

    monkeypatch.setattr(Wire, "calls", cut_calls)
    return names.append


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything be sent a second time, by something below us that did not hear the first answer."""
    calls = Wire.calls

    async def calls_twice(wire: Wire, commands: Sequence[Sequence[Value]]) -> list[Any]:
        await calls(wire, commands)
        return await calls(wire, commands)

    monkeypatch.setattr(Wire, "calls", calls_twice)


def _refused(answers: list[Any]) -> bool:
    return isinstance(answers[0], Exception)


async def begin(broker: RedisBroker, queue: str, *, owner: str = "worker", **options: Any) -> Subscription:
    """A subscription to a queue with three messages."""
    asked = Options(owner=owner, obituary=DEAD, **options)
    subscription = await broker.subscribe(queue, group="shop", options=asked)
    await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(3)])
    return subscription


async def fetch(subscription: Subscription) -> list[Delivery]:
    found: list[Delivery] = []
    while len(found) < 3:
        found += await subscription.fetch(10, wait=WAIT)
    return found


async def test_what_was_handed_out_unheard_comes_again_and_has_spent_nothing(
    broker: RedisBroker, queue: str, cut: Cut
) -> None:
    subscription = await begin(broker, queue)

    cut("XREADGROUP")
    with pytest.raises(BrokerUnavailable):
        await subscription.fetch(10, wait=WAIT)
    deliveries = await fetch(subscription)

    assert sorted(delivery.message.body for delivery in deliveries) == [b"0", b"1", b"2"]
    assert {delivery.attempt for delivery in deliveries} == {1}
    assert not any(delivery.alone for delivery in deliveries)


async def test_a_retry_that_was_handed_out_unheard_comes_again_and_has_spent_nothing(
    broker: RedisBroker, queue: str, cut: Cut
) -> None:
    subscription = await begin(broker, queue)
    await subscription.settle([Settlement(delivery, RetryLater(SOON)) for delivery in await fetch(subscription)])

    cut("gather")
    with pytest.raises(BrokerUnavailable):
        await fetch(subscription)
    deliveries = await fetch(subscription)

    assert {delivery.attempt for delivery in deliveries} == {2}


@pytest.mark.parametrize("call", ["gather", "XREADGROUP"])
@pytest.mark.parametrize("failures", [0, 1], ids=["new", "retried"])
async def test_what_one_part_of_a_fetch_brought_is_not_lost_to_the_fault_of_another(
    call: str, failures: int, broker: RedisBroker, queue: str, cut: Cut
) -> None:
    subscription = await broker.subscribe(queue, group="shop", options=Options(owner="worker"))
    for turn in range(12):  # a fetch has its parts in turns
        for _ in range(turn % 4):
            await subscription.fetch(10, wait=NOW)
        await broker.publish(queue, [Message("", queue, b"1")])
        if failures:
            (delivery,) = await subscription.fetch(10, wait=WAIT)
            await subscription.settle([Settlement(delivery, RetryLater(SOON))])
        cut(call)
        found: Sequence[Delivery] = ()
        with contextlib.suppress(BrokerUnavailable):
            found = await subscription.fetch(10, wait=WAIT)
        found = found or await subscription.fetch(10, wait=WAIT)
        await subscription.settle([Settlement(delivery) for delivery in found])

        assert [delivery.failures for delivery in found] == [failures]


async def test_a_suspect_that_was_handed_out_unheard_is_handed_out_again_without_a_crash(
    broker: RedisBroker, queue: str, cut: Cut
) -> None:
    held = await fetch(await begin(broker, queue, owner=DEAD.owner))
    subscription = await broker.subscribe(queue, group="shop", options=Options(owner="worker", obituary=DEAD))

    for _ in range(3):
        cut("suspect")
        with pytest.raises(BrokerUnavailable):
            await subscription.fetch_suspect()
    found = [await subscription.fetch_suspect() for _ in range(4)]

    assert [suspect and suspect.message.id for suspect in found] == [*(one.message.id for one in held), None]
    assert [suspect.crashes for suspect in found if suspect] == [0, 0, 0]


@pytest.mark.parametrize(
    ("outcome", "call", "dlq"),
    [
        (ACK, "XACK", WRITTEN),
        (RetryLater(SOON), "settle", WRITTEN),
        (GiveUp("no"), "settle", WRITTEN),
        (GiveUp("no"), "settle", DeadLetterPlace(enabled=False, off="drop")),
        (GiveUp("no"), "settle", DeadLetterPlace(enabled=False, off="hold")),
    ],
    ids=["ack", "retry", "give-up", "drop", "hold"],
)
async def test_an_outcome_that_was_carried_out_unheard_is_repeated(
    outcome: Outcome, call: str, dlq: DeadLetterPlace, broker: RedisBroker, queue: str, cut: Cut
) -> None:
    subscription = await begin(broker, queue, dlq=dlq)
    delivery, *_ = await fetch(subscription)
    item = Settlement(delivery, outcome, letter=letter(queue) if isinstance(outcome, GiveUp) else None)

    cut(call)
    with pytest.raises(BrokerUnavailable):
        await subscription.settle([item])
    (answer,) = await subscription.settle([item])

    assert answer.status is SettleStatus.REPEATED
    assert await broker.dead_letters(queue).length() == (1 if isinstance(outcome, GiveUp) and dlq.enabled else 0)


async def test_what_was_handed_back_unheard_is_handed_back_once(broker: RedisBroker, queue: str, cut: Cut) -> None:
    subscription = await begin(broker, queue)
    deliveries = await fetch(subscription)

    cut("release")
    with pytest.raises(BrokerUnavailable):
        await subscription.release(deliveries)
    await subscription.release(deliveries)
    again = await fetch(subscription)

    assert sorted(one.message.id for one in again) == sorted(one.message.id for one in deliveries)
    assert {one.attempt for one in again} == {1}
    assert (await broker.depth(queue, group="shop")).in_flight == 3


async def test_a_vanished_message_whose_letter_went_unheard_takes_no_other_with_it(
    broker: RedisBroker, queue: str, cut: Cut, client: redis.Redis
) -> None:
    subscription = await begin(broker, queue)
    deliveries = await fetch(subscription)
    await subscription.release(deliveries)
    client.xdel(queue, deliveries[0].message.id)

    cut("bury")
    found = await subscription.fetch(10, wait=WAIT)
    letters = await broker.dead_letters(queue).peek()

    assert [one.message.id for one in found] == [one.message.id for one in deliveries[1:]]
    assert [one.letter.original_message_id for one in letters] == [deliveries[0].message.id]


@pytest.mark.usefixtures("twice")
async def test_messages_that_are_published_for_later_and_sent_again_are_added_once(
    broker: RedisBroker, queue: str
) -> None:
    ids = await broker.publish(queue, [Message("", queue, b"%d" % number) for number in range(3)], delay=WAIT)
    others = await broker.publish(queue, [Message("", queue, b"3")], delay=WAIT)

    assert len({*ids, *others}) == 4
    assert (await broker.depth(queue, group="")).scheduled == 4


async def test_a_letter_that_is_redriven_and_sent_again_goes_back_once(
    broker: RedisBroker, queue: str, request: pytest.FixtureRequest
) -> None:
    subscription = await broker.subscribe(queue, group="shop", options=Options(owner="worker"))
    await broker.dead_letters(queue).send(letter(queue))
    (entry,) = await broker.dead_letters(queue).peek()
    request.getfixturevalue("twice")
    sent = await broker.dead_letters(queue).redrive(entry.entry_id)
    request.getfixturevalue("monkeypatch").undo()
    found = await subscription.fetch(10, wait=WAIT)

    assert [delivery.message.id for delivery in found] == [sent]
    assert await broker.dead_letters(queue).length() == 0
