from datetime import UTC, datetime, timedelta

from redrive.clock import SystemClock


async def test_the_system_clock_tells_the_time_in_utc_and_sleeps() -> None:
    clock = SystemClock()
    before = datetime.now(UTC)
    first = clock.now()
    await clock.sleep(timedelta(milliseconds=1))

    assert first.tzinfo is UTC
    assert before <= first < clock.now()
