"""Little load: a message now and then, its body the moment it was published, and how long after that it was handled."""

import asyncio
import random
import subprocess
import time
from collections.abc import AsyncIterator
from typing import Any

from benchmarks.runs import ROOT, command

GAP = 0.02  # seconds between two messages, on average


class Times(list[float]):
    """Durations in seconds; `complete` is set when so many are noted."""

    def __init__(self, wanted: int) -> None:
        super().__init__()
        self._wanted = wanted
        self.complete = asyncio.Event()

    def note(self, seconds: float) -> None:
        self.append(seconds)
        if len(self) >= self._wanted:
            self.complete.set()


async def moments(messages: int) -> AsyncIterator[bytes]:
    """The bodies to publish, each when its moment has come."""
    for _ in range(messages):
        await asyncio.sleep(random.uniform(0, 2 * GAP))
        yield repr(time.monotonic()).encode()


def since(body: bytes) -> float:
    """Seconds since this body was made; by any process of this machine."""
    return time.monotonic() - float(body)


async def call_apart(program: str, **arguments: Any) -> None:
    """Call `module:function` in a process of its own, while this event loop goes on."""
    words = command(program, **arguments)
    process = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdout=subprocess.DEVNULL)
    assert await process.wait() == 0
