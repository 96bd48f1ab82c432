"""How every client is driven: callers who each ask one request after the other, and clients before every fault."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from benchmarks.gateway.provider import FAULTS
from benchmarks.measure import Meter

PROMPT: Final = "Say something about dead letters, in a sentence or two, as you would to a friend. " * 2
MESSAGES: Final = [{"role": "user", "content": PROMPT}]

COLLECT_AFTER: Final = (50_000, 20, 20)  # as `freeze_startup` says; a peer's environment has no Redrive in it

RETRIES: Final = 2
TIMEOUT: Final = 2.0
CUT: Final = 12.0

Ask = Callable[[], Awaitable[object]]


async def drive(ask: Ask, *, messages: int, in_flight: int) -> dict[str, Any]:
    """Ask so often, so many at once; what it cost.

    What has been imported is no business of the garbage collector's any more, which also looks less often: for every
    client, what `redrive gateway serve` does at its start.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    meter = Meter(messages)
    left = iter(range(messages))

    async def caller() -> None:
        for _ in left:
            await ask()
            meter.add(1)

    await asyncio.gather(*(caller() for _ in range(in_flight)))
    return meter.result()


async def meet(asks: Callable[[str], Ask]) -> dict[str, dict[str, Any]]:
    """Ask once before every fault, all at the same time; what was said, and after how many seconds.

    A request that nothing happens to goes before: what a client loads for its first one is not to be seen.
    """
    await asks("ok")()
    ended = await asyncio.gather(*(_end(asks(fault)) for fault in FAULTS))
    return dict(zip(FAULTS, ended, strict=True))


async def _end(ask: Ask) -> dict[str, Any]:
    began = time.monotonic()
    try:
        async with asyncio.timeout(CUT):
            said = await ask()
    except TimeoutError as error:
        waiting = time.monotonic() - began >= CUT - 0.5
        said = "still waiting" if waiting else type(error).__name__
    except Exception as error:  # noqa: BLE001 - whatever a client raises is its answer
        said = type(error).__name__
    else:
        said = "answered" if said else "an empty answer, as a success"
    return {"said": said, "seconds": time.monotonic() - began}
