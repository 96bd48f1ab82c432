import asyncio
import logging
from datetime import timedelta

import pytest

from redrive.gateway.alarms import Alarms
from redrive.testing import ManualClock

SECOND = timedelta(seconds=1)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_alarms_ring_in_the_order_of_their_times() -> None:
    clock, rung = ManualClock(), []
    alarms = Alarms(clock)
    for seconds in (3, 1, 2):
        alarms.at(clock.now() + seconds * SECOND, lambda seconds=seconds: rung.append(seconds))  # type: ignore[misc]
    await settle()
    clock.advance(2)
    await settle()
    assert rung == [1, 2]
    clock.advance(1)
    await settle()
    assert rung == [1, 2, 3]
    assert len(alarms) == 0
    await alarms.aclose()


async def test_an_alarm_that_is_called_off_does_not_ring() -> None:
    clock, rung = ManualClock(), []
    alarms = Alarms(clock)
    alarm = alarms.at(clock.now() + SECOND, lambda: rung.append(1))
    alarms.call_off(alarm)
    alarms.call_off(alarm)
    alarms.call_off(None)
    await settle()
    clock.advance(5)
    await settle()
    assert rung == []
    await alarms.aclose()


async def test_an_alarm_may_set_another_one() -> None:
    clock, rung = ManualClock(), []
    alarms = Alarms(clock)
    again = lambda: rung.append("again")  # noqa: E731
    alarms.at(clock.now() + SECOND, lambda: alarms.at(clock.now() + SECOND, again))
    for _ in range(2):
        await settle()
        clock.advance(1)
    await settle()
    assert rung == ["again"]
    await alarms.aclose()


async def test_an_alarm_that_fails_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    clock, rung = ManualClock(), []
    alarms = Alarms(clock)
    alarms.at(clock.now() + SECOND, lambda: 1 / 0)
    alarms.at(clock.now() + SECOND, lambda: rung.append(1))
    await settle()
    with caplog.at_level(logging.CRITICAL):
        clock.advance(1)
        await settle()
    assert rung == [1]
    await alarms.aclose()


async def test_what_was_called_off_is_not_kept() -> None:
    clock = ManualClock()
    alarms = Alarms(clock)
    for alarm in [alarms.at(clock.now() + SECOND, lambda: None) for _ in range(5000)]:
        alarms.call_off(alarm)
    assert len(alarms) == 0
    assert len(alarms._heap) <= 2001  # noqa: SLF001
    await alarms.aclose()


async def test_a_sleeper_that_was_killed_is_replaced() -> None:
    clock, rung = ManualClock(), []
    alarms = Alarms(clock)
    alarms.at(clock.now() + SECOND, lambda: rung.append(1))
    await settle()
    assert alarms._sleeper is not None  # noqa: SLF001
    alarms._sleeper.cancel()  # noqa: SLF001
    await settle()
    clock.advance(1)
    await settle()
    assert rung == [1]
    await alarms.aclose()
