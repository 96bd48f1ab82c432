import asyncio
from datetime import timedelta

from redrive.gateway.alarms import Alarms
from redrive.gateway.patience import Patience
from redrive.gateway.room import Room
from redrive.testing import ManualClock

SECOND = timedelta(seconds=1)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_patience_ends_with_each_thing_at_its_own_time() -> None:
    clock, late = ManualClock(), list[str]()
    alarms = Alarms(clock)
    patience = Patience[str](10 * SECOND, late.append, alarms=alarms)
    for name in "abcd":
        patience.begin(name, now=clock.now())
        await settle()
        clock.advance(1)
    patience.end("b")
    patience.end("never begun")
    for _ in range(6):
        await settle()
        clock.advance(1)
    await settle()
    assert late == ["a"]

    clock.advance(1)
    await settle()
    assert late == ["a"]  # the second has ended before
    clock.advance(1)
    await settle()
    assert late == ["a", "c"]
    clock.advance(10)
    await settle()
    assert late == ["a", "c", "d"]
    assert len(alarms) == 0
    await alarms.aclose()


async def test_patience_with_one_is_over_although_another_one_cannot_be_told_of() -> None:
    clock, late = ManualClock(), list[int]()
    alarms = Alarms(clock)

    def over(number: int) -> None:
        late.append(number)
        if number == 1:
            raise RuntimeError

    patience = Patience[int](SECOND, over, alarms=alarms)
    for number in (1, 2):
        patience.begin(number, now=clock.now())
    await settle()
    clock.advance(1)
    await settle()

    assert late == [1, 2]
    await alarms.aclose()


async def test_a_place_that_is_given_back_goes_to_whoever_has_waited_longest() -> None:
    room = Room(1)
    assert room.take()
    assert not room.take()
    first, second = room.wait(), room.wait()

    room.release()
    assert first.done()
    assert not second.done()
    assert not room.take()

    room.release()
    assert second.done()


async def test_who_has_left_the_line_gets_no_place() -> None:
    room = Room(1)
    room.take()
    gone, waiting = room.wait(), room.wait()
    gone.cancel()

    room.release()
    assert waiting.done()
    room.release()
    assert room.take()
