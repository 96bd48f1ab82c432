"""The room of a line: how many more requests it takes in, and who waits for a place."""

import asyncio
from collections import deque


class Room:
    """So many places. One that is given back goes to whoever has waited longest. Belongs to one event loop."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Take a place; False if none is free."""
        if not self._free:
            return False
        self._free -= 1
        return True

    def wait(self) -> asyncio.Future[None]:
        """Stand in line for a place, which has been taken when the future has its result. To cancel it is to leave."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def release(self) -> None:
        """Give a place back."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return
        self._free += 1
