"""A letter store that tells how long its calls take."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from redrive.core.event import StoreCalled
from redrive.core.ports import Clock, EventSink
from redrive.core.ports.store import Store


def timed(store: Store, *, clock: Clock, sink: EventSink) -> Store:
    """The same store; each call of the port that ends, well or not, is told to the sink as `StoreCalled`."""
    return cast("Store", _TimedStore(store, clock=clock, sink=sink))


class _TimedStore:
    def __init__(self, store: Store, *, clock: Clock, sink: EventSink) -> None:
        self._store = store
        self._clock = clock
        self._sink = sink

    def __getattr__(self, name: str) -> Any:
        """Asked once for each name: what is found stays."""
        found = getattr(self._store, name)
        if name in _CALLS:
            found = self._timed(name, found)
            setattr(self, name, found)
        return found

    def _timed(self, name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def told(*args: Any, **kwargs: Any) -> Any:
            began = time.monotonic()
            try:
                return await call(*args, **kwargs)
            finally:
                seconds = time.monotonic() - began
                self._sink.emit(StoreCalled(at=self._clock.now(), queue="", call=name, seconds=seconds))

        return told


_CALLS = frozenset(name for name in dir(Store) if not name.startswith("_") and name != "aclose")
