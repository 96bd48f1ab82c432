"""The entrance: the API with a guard at the door, or, on loopback before the first token, without one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

from starlette.types import Receive, Scope, Send

from redrive.api.app import create_app
from redrive.api.audience import audience_of
from redrive.api.auth import Guard
from redrive.core.errors import StoreError
from redrive.service import ANSWER_WITHIN, Service
from redrive.triage.access import any_issued

LOOK = timedelta(seconds=2)


class Entrance:
    """An ASGI app. The first token that is issued while the service runs is noticed within two seconds.

    From then on one is asked for, whatever becomes of it, and who listens without one is sent away. While nobody knows
    whether there is a token, because the store is away, one is asked for too.
    """

    def __init__(self, service: Service, *, loopback: bool) -> None:
        self._service = service
        self._loopback = loopback
        self._guarded = create_app(service, guard=Guard(needs_token=True))
        self._open = create_app(service, guard=Guard(needs_token=False)) if loopback else self._guarded
        self.needs_token = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._guarded if self.needs_token else self._open
        await app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look for tokens, now and again, for as long as the block lasts."""
        if not self._loopback:
            yield
            return
        await self._look()
        watching = asyncio.create_task(self._keep_looking())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def close(self) -> None:
        """Let every stream end. Idempotent; to be called before a server waits for its connections."""
        for app in (self._guarded, self._open):
            audience_of(app).close()

    async def _keep_looking(self) -> None:
        while True:
            await self._service.clock.sleep(LOOK)
            await self._look()

    async def _look(self) -> None:
        with contextlib.suppress(StoreError, TimeoutError):  # what is known stays so
            async with asyncio.timeout(ANSWER_WITHIN):
                issued = await any_issued(self._service.store)
            if issued and not self.needs_token:
                audience_of(self._open).close()
            self.needs_token = issued
