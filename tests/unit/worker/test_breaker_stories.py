"""Outages and bad messages: what the breaker makes of each, and of both at once."""

import contextlib
from collections import Counter
from collections.abc import Callable

import pytest

from redrive.app import App
from redrive.core.delivery import Delivery
from redrive.core.event import ConsumerPaused
from redrive.testing.rehearsal import Rehearsal, run


def shop() -> App:
    return App("memory://", name="shop")


async def publish(rehearsal: Rehearsal, count: int) -> None:
    for number in range(count):
        await rehearsal.publish("orders", number)


async def wait_in_vain(rehearsal: Rehearsal) -> None:
    """Work until a hundred jumps of the clock have not closed the breaker."""
    with pytest.raises(TimeoutError, match="breaker of orders is still open"):
        await rehearsal.drain()


async def work_until(enough: Callable[[], bool], rehearsal: Rehearsal) -> None:
    """Work for as long as it takes, up to some hours."""
    for _ in range(50):
        with contextlib.suppress(TimeoutError):
            await rehearsal.drain()
        if enough():
            return


def paused(rehearsal: Rehearsal) -> bool:
    return any(isinstance(event, ConsumerPaused) for event in rehearsal.events)


def dead(rehearsal: Rehearsal) -> list[int]:
    return sorted(int(letter.payload or b"") for letter in rehearsal.letters)


# ------------------------------------------------------------------------------------------------------- bad messages


async def test_a_few_messages_that_always_fail_all_become_letters() -> None:
    app = shop()

    @app.consumer("orders", retry=[0.1, 0.1])
    async def charge(order: int) -> None:
        raise ValueError(order)

    async with run(app) as rehearsal:
        await publish(rehearsal, 10)
        await rehearsal.drain()

    assert dead(rehearsal) == [*range(10)]
    assert {len(letter.attempts) for letter in rehearsal.letters} == {3}
    assert not paused(rehearsal)


@pytest.mark.parametrize("error", [ValueError, TimeoutError])
async def test_bad_messages_among_good_ones_become_letters_however_soon_they_are_retried(
    error: type[Exception],
) -> None:
    app = shop()
    done = set()

    @app.consumer("orders", retry=[0, 0])
    async def charge(order: int) -> None:
        if order % 10 == 0:
            raise error(order)
        done.add(order)

    async with run(app) as rehearsal:
        await publish(rehearsal, 10_000)
        await rehearsal.drain()

    assert dead(rehearsal) == [*range(0, 10_000, 10)]
    assert len(done) == 9_000
    assert not paused(rehearsal)


# ------------------------------------------------------------------------------------------------------------ outages


async def test_an_outage_in_a_small_queue_is_seen_at_its_retries() -> None:
    app = shop()
    down = True
    done = set()

    @app.consumer("orders", retry=[1, 2, 4])
    async def charge(order: int) -> None:
        if down:
            raise ConnectionError
        done.add(order)

    async with run(app) as rehearsal:
        await publish(rehearsal, 10)
        await wait_in_vain(rehearsal)
        down = False
        await rehearsal.drain()

    assert dead(rehearsal) == []
    assert done == set(range(10))


async def test_an_outage_that_no_rule_knows_costs_an_attempt_per_probe_and_no_letters() -> None:
    app = shop()
    down = True
    done = set()

    @app.consumer("orders", retry=[1, 2, 4], concurrency=10)
    async def charge(order: int) -> None:
        if down:
            raise RuntimeError("what a driver nobody knows says of its server")
        done.add(order)

    async with run(app) as rehearsal:
        await publish(rehearsal, 500)
        await wait_in_vain(rehearsal)
        spent = len(rehearsal.delays)
        down = False
        await rehearsal.drain()

    assert 50 <= spent <= 160
    assert dead(rehearsal) == []
    assert done == set(range(500))


# --------------------------------------------------------------------------------------------------------------- both


async def test_bad_messages_met_by_the_probes_of_an_outage_end_and_good_ones_spend_nothing() -> None:
    app = shop()
    down = True
    attempts: Counter[int] = Counter()

    @app.consumer("orders", retry=[1, 2], concurrency=10)
    async def charge(order: int, delivery: Delivery) -> None:
        if order % 5 == 0:
            raise ValueError(order)
        if down:
            raise ConnectionError
        attempts[delivery.attempt] += 1

    async with run(app) as rehearsal:
        await publish(rehearsal, 200)
        await wait_in_vain(rehearsal)
        down = False
        await rehearsal.drain()

    assert dead(rehearsal) == [*range(0, 200, 5)]
    assert attempts.total() == 160
    assert attempts[1] > 140  # the others failed before the breaker opened
    assert attempts[1] + attempts[2] == 160


@pytest.mark.parametrize("bad", [1, 30])
async def test_messages_that_look_like_an_outage_by_themselves_do_not_keep_the_breaker_open(bad: int) -> None:
    app = shop()
    down = True
    done = set()

    @app.consumer("orders", retry=[1, 2], concurrency=10)
    async def charge(order: int) -> None:
        if down or order < bad:
            raise TimeoutError
        done.add(order)

    async with run(app) as rehearsal:
        await publish(rehearsal, 200)
        await wait_in_vain(rehearsal)
        down = False
        await work_until(lambda: len(done) + len(rehearsal.letters) == 200, rehearsal)

    assert dead(rehearsal) == [*range(bad)]
    assert done == set(range(bad, 200))


async def test_messages_that_look_like_an_outage_and_are_alone_wait_until_others_go_well() -> None:
    app = shop()
    done = set()

    @app.consumer("orders", retry=[0.1, 0.1])
    async def charge(order: int) -> None:
        if order < 10:
            raise TimeoutError
        done.add(order)

    async with run(app) as rehearsal:
        await publish(rehearsal, 10)
        await wait_in_vain(rehearsal)
        waiting = dead(rehearsal)
        for number in range(10, 20):
            await rehearsal.publish("orders", number)
        await work_until(lambda: len(done) + len(rehearsal.letters) == 20, rehearsal)

    assert waiting == []
    assert dead(rehearsal) == [*range(10)]
    assert done == set(range(10, 20))


async def test_bad_messages_that_fall_due_while_an_outage_lasts_do_not_keep_the_breaker_open() -> None:
    app = shop()
    down = False
    done = set()

    @app.consumer("orders", retry=[600, 600], concurrency=10)
    async def charge(order: int) -> None:
        if order % 2:
            raise ValueError(order)
        if down:
            raise ConnectionError
        done.add(order)

    async with run(app) as rehearsal:
        await publish(rehearsal, 400)
        await rehearsal.broker.idle()
        down = True
        for number in range(400, 800, 2):
            await rehearsal.publish("orders", number)
        await wait_in_vain(rehearsal)
        down = False
        await rehearsal.drain()

    assert dead(rehearsal) == [*range(1, 400, 2)]
    assert done == set(range(0, 800, 2))
