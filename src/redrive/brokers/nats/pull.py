"""Pulling: a request for so many messages, and what comes of it."""

import asyncio
import contextlib
import json
from datetime import timedelta
from typing import Any, Final

from nats.aio.client import Client  # noqa: TC002 - as everywhere else
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error

from redrive.brokers.nats.errors import unavailable
from redrive.brokers.nats.groups import Well, nanos
from redrive.brokers.nats.link import Link, status_of
from redrive.core.duration import NOW
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.ports import Clock

_GRACE: Final = 3.0  # seconds beyond the end of a request, after which the server is not believed to be there
_ENDS: Final = frozenset({"404", "408"})


class Pull:
    """One well, pulled by one task at a time. What arrives for nobody is kept for the next who asks."""

    def __init__(self, link: Link, well: Well, *, clock: Clock) -> None:
        self.well = well
        self.asked_at = clock.now()
        """When what was taken last was asked for: no lease of it began earlier."""
        self._link = link
        self._clock = clock
        self._client: Client | None = None
        self._inbox: Subscription | None = None
        self._found: list[Msg] = []
        self._wanted = 0
        self._done: asyncio.Future[BrokerError | None] | None = None

    async def take(self, limit: int, *, wait: timedelta) -> list[Msg]:
        """Up to `limit` messages: those that are there, or the first that come within `wait`."""
        if not self._found:
            await self._request(limit, wait)
        taken, self._found = self._found[:limit], self._found[limit:]
        return taken

    async def aclose(self) -> list[Msg]:
        """Ask no more; return what arrived and was not taken."""
        await self._leave()
        left, self._found = self._found, []
        return left

    async def _request(self, limit: int, wait: timedelta) -> None:
        inbox = await self._open()
        self.asked_at = self._clock.now()
        self._wanted = limit
        self._done = done = asyncio.get_running_loop().create_future()
        token = self._link.listen(self._hear_trouble)
        asked: dict[str, Any] = {"batch": limit, "no_wait": True}
        if wait > NOW:
            asked["expires"] = nanos(wait)
        try:
            await self._ask(inbox, json.dumps(asked).encode())
            async with asyncio.timeout(wait.total_seconds() + _GRACE):
                trouble = await done
        except TimeoutError as error:
            await self._link.drop()
            raise unavailable(error) from error
        except asyncio.CancelledError:
            await self._leave()  # whoever asked has gone: the server must not send any more
            raise
        finally:
            self._link.unlisten(token)
            self._done = None
        if trouble is not None and not self._found:
            raise trouble

    async def _ask(self, inbox: Subscription, asked: bytes) -> None:
        assert self._client is not None  # noqa: S101 - it was opened
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.well.stream.name}.{self.well.consumer}"
        try:
            await self._client.publish(subject, asked, reply=inbox.subject)
        except (Error, OSError) as error:
            raise unavailable(error) from error

    async def _open(self) -> Subscription:
        client = await self._link.client()
        if self._inbox is None or client is not self._client:
            self._client = client

            async def hear(message: Msg) -> None:
                if client is self._client:  # else it was asked for on a connection that was given up: it comes again
                    self._on_message(message)

            try:
                self._inbox = await client.subscribe(client.new_inbox(), cb=hear)
            except (Error, OSError) as error:
                raise unavailable(error) from error
        return self._inbox

    async def _leave(self) -> None:
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            with contextlib.suppress(Error, OSError):
                await inbox.unsubscribe()

    def _on_message(self, message: Msg) -> None:
        status = "" if message.reply else status_of(message)  # what can be acked is a message, whatever it says
        if not status:
            self._found.append(message)
            if len(self._found) >= self._wanted:
                self._end(None)
        elif status in _ENDS:
            self._end(None)
        else:
            told = (message.headers or {}).get("Description", "")
            self._end(BrokerUnavailable(f"nats: nothing to be had from {self.well.key}: {status} {told}"))

    def _hear_trouble(self, said: Msg | BrokerError) -> None:
        if isinstance(said, BrokerError):
            self._end(said)

    def _end(self, trouble: BrokerError | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(trouble)
