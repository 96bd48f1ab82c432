"""The entrance: the rooms with a guard at the door, or, on loopback before the first token, without one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta

from starlette.types import ASGIApp, Receive, Scope, Send

from redrive.core.errors import StoreError
from redrive.door.audience import Audience
from redrive.door.guard import Guard
from redrive.service import ANSWER_WITHIN, Service
from redrive.triage.access import any_issued

LOOK = timedelta(seconds=2)
SOON = timedelta(milliseconds=100)  # while nobody knows
OPENED_WITHIN = 10.0  # seconds, of a store that may have to be brought up to date first

Furnish = Callable[[Service, Guard, Audience], Mapping[str, ASGIApp]]
"""Makes the apps that answer, by what the paths of each begin with; the empty one answers all the rest."""


class Rooms:
    """One set of rooms, and the audience that listens in them. A path belongs to the longest name that fits it."""

    def __init__(self, service: Service, furnish: Furnish, *, guard: Guard) -> None:
        self.audience = Audience()
        made = furnish(service, guard, self.audience)
        self._rooms = sorted(made.items(), key=lambda room: -len(room[0]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        room = next(app for name, app in self._rooms if path == name or path.startswith(f"{name}/"))
        await room(scope, receive, send)


class Entrance:
    """An ASGI app. The first token that is issued while the service runs is noticed within two seconds.

    From then on one is asked for, whatever becomes of it, and who listens without one is sent away. While nobody knows
    whether there is a token, because the store is away, who comes without one is told to try again.
    """

    def __init__(self, service: Service, furnish: Furnish, *, loopback: bool) -> None:
        self._service = service
        self._loopback = loopback
        self._guard = Guard(needs_token=True, is_sure=not loopback)
        self._guarded = Rooms(service, furnish, guard=self._guard)
        self._open = Rooms(service, furnish, guard=Guard(needs_token=False)) if loopback else self._guarded
        self.needs_token = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rooms = self._guarded if self.needs_token else self._open
        await rooms(scope, receive, send)

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look for tokens, now and again, for as long as the block lasts."""
        if not self._loopback:
            yield
            return
        await self._look(within=OPENED_WITHIN)
        watching = asyncio.create_task(self._keep_looking())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def close(self) -> None:
        """Let every stream end. Idempotent; to be called before a server waits for its connections."""
        for rooms in (self._guarded, self._open):
            rooms.audience.close()

    async def _keep_looking(self) -> None:
        while True:
            await self._service.clock.sleep(LOOK if self._guard.is_sure else SOON)
            await self._look(within=ANSWER_WITHIN)

    async def _look(self, *, within: float) -> None:
        with contextlib.suppress(StoreError, TimeoutError):  # what is known stays so
            async with asyncio.timeout(within):
                issued = await any_issued(self._service.store)
            if issued and not self.needs_token:
                self._open.audience.close()
            self.needs_token = issued
            self._guard.is_sure = True
