"""Being told to stop: SIGTERM and SIGINT, for commands that run until then."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def told_to_stop() -> asyncio.Event:
    """From now on SIGTERM and SIGINT set this event. Told twice, the process ends at once."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def told(number: int) -> None:
        loop.remove_signal_handler(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told, number)
    return stop


async def until_told(work: Coroutine[Any, Any, object]) -> None:
    """Do this until it is done, or until SIGTERM or SIGINT. Raises what it raises."""
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(work), asyncio.create_task(told_to_stop().wait())]
    ended, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for task in ended:
        task.result()
