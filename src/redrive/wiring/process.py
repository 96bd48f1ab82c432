"""What a process of ours does once: the event loop it uses, and the garbage it need not look at."""

import asyncio
import gc
from collections.abc import Callable


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop where that extra is installed, else None for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


_COLLECT_AFTER = (50_000, 20, 20)


def freeze_startup() -> None:
    """Let garbage collections pass over what exists by now. For a process that is ours, once it is at work.

    A worker makes objects fast enough for a full collection several times a second; each would walk through every
    module that was ever imported. What it makes for each message is gone soon after, and in no cycle: there is little
    to find for a collection, so they are made less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
