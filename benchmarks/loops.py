"""Which event loop a measured process has: asyncio's own, or uvloop's."""

import asyncio
import importlib
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

LOOPS = ("asyncio", "uvloop")

Result = TypeVar("Result")


def choose(loop: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The factory of this loop. After `asyncio`, uvloop cannot be imported: as where it is not installed."""
    if loop == "uvloop":
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
        return factory
    sys.modules["uvloop"] = None  # type: ignore[assignment] # what Python documents: an import of it fails
    return None


def run(loop: str, work: Coroutine[Any, Any, Result]) -> Result:
    """As `asyncio.run`, on this loop."""
    with asyncio.Runner(loop_factory=choose(loop)) as runner:
        return runner.run(work)
