"""Work on many letters at once: done aside, so that nobody else waits for it."""

import asyncio
from collections.abc import Callable, Sized
from typing import TypeVar, TypeVarTuple, Unpack

LARGE = 2000  # letters: a few milliseconds' worth

Result = TypeVar("Result")
Given = TypeVarTuple("Given")


async def aside(letters: Sized, work: Callable[[Unpack[Given]], Result], *given: *Given) -> Result:
    """What a pure function makes of these letters: at once if they are few, in a thread if they are many."""
    if len(letters) <= LARGE:
        return work(*given)
    return await asyncio.to_thread(work, *given)
