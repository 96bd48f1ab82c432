import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from redrive.testing.clock import ManualClock


async def test_time_stands_still_until_it_is_advanced() -> None:
    start = datetime(2031, 5, 1, tzinfo=UTC)
    clock = ManualClock(start)
    before = clock.now()
    clock.advance(1.5)

    assert (before, clock.now()) == (start, start + timedelta(seconds=1.5))


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock = ManualClock()
    woken: list[int] = []

    async def sleeper(seconds: int) -> None:
        await clock.sleep(timedelta(seconds=seconds))
        woken.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in (3, 1, 2, 1):
            group.create_task(sleeper(seconds))
        await asyncio.sleep(0)
        clock.advance(2)
        await asyncio.sleep(0)
        half_way = list(woken)
        clock.advance("1s")

    assert half_way == [1, 1, 2]
    assert woken == [1, 1, 2, 3]


async def test_the_next_wake_up_is_known_and_cancelled_sleepers_are_forgotten() -> None:
    clock = ManualClock()
    first = asyncio.ensure_future(clock.sleep(timedelta(seconds=1)))
    second = asyncio.ensure_future(clock.sleep(timedelta(seconds=2)))
    await asyncio.sleep(0)
    before = clock.next_wake_at()
    first.cancel()
    await asyncio.wait([first])

    assert before == clock.now() + timedelta(seconds=1)
    assert clock.next_wake_at() == clock.now() + timedelta(seconds=2)
    clock.advance(2)
    await second
    assert clock.next_wake_at() is None


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(seconds=-1)])
async def test_a_sleep_of_no_length_lets_others_run_and_returns(delay: timedelta) -> None:
    clock = ManualClock()
    other = asyncio.ensure_future(asyncio.sleep(0))
    await clock.sleep(delay)

    assert clock.next_wake_at() is None
    await other


def test_time_does_not_go_back() -> None:
    clock = ManualClock()
    with pytest.raises(ValueError, match="zero or more"):
        clock.advance(-1)
