"""Time for a NATS server, whose own clock cannot be moved.

Everything that becomes of a message in time is said aloud: deliveries, and the words with which they are answered. So
whoever listens knows when the server would deliver a message again, and can ask it to do so now: a nak is what the end
of a lease is. Messages that the server publishes later are told to be due now.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Protocol, Self

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from redrive.core.duration import Duration, as_duration
from redrive.core.ports import LEASE, Clock
from redrive.testing.clock import ManualClock

PATIENCE: Final = 5.0
AHEAD: Final = timedelta(days=1)  # of a clock that stands still: nothing falls due by the server's own time
_ANSWERED: Final = "$JS.ACK."
_LATER: Final = "rd.later."


class MovableClock(Clock, Protocol):
    def advance(self, delta: timedelta) -> None: ...


class NatsTime:
    """Lets a server's time pass together with a clock, for leases of one length."""

    def __init__(self, url: str, clock: MovableClock, *, lease: timedelta = LEASE) -> None:
        self.clock = clock
        self._url = url
        self._lease = lease
        self._client: Client = Client()
        self._pending: dict[str, tuple[str, datetime]] = {}
        self._later: dict[str, tuple[Msg, datetime]] = {}

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def open(self) -> None:
        """Begin to listen."""
        self._client = await nats.connect(self._url)
        await self._client.subscribe(">", cb=self._hear)  # one for all: what is said is heard in its order
        await self._client.flush()

    async def aclose(self) -> None:
        await self._client.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def elapse(self, delta: timedelta) -> None:
        """Let time pass: what falls due by then is due now."""
        await self._hear_all()
        self.clock.advance(delta)
        now = self.clock.now()
        due = [key for key, (_, until) in self._pending.items() if until <= now]
        for key in due:
            reply, _ = self._pending.pop(key)
            await self._client.request(reply, b"-NAK", timeout=PATIENCE)
        for subject, (message, until) in list(self._later.items()):
            if until <= now:
                await self._hurry(subject, message)

    async def forget_all(self) -> None:
        """Delete every stream: ours to do, since we started the server."""
        while names := (await self._ask("STREAM.NAMES")).get("streams"):
            for name in names:
                await self._ask(f"STREAM.DELETE.{name}")

    async def _hurry(self, subject: str, message: Msg) -> None:
        del self._later[subject]
        heading = {**(message.headers or {}), "Nats-Schedule": "@at 2020-01-01T00:00:00Z"}
        await self._client.request(subject, message.data, headers=heading, timeout=PATIENCE)
        self._later.pop(subject, None)
        target = heading["Nats-Schedule-Target"]
        (stream,) = (await self._ask("STREAM.NAMES", {"subject": target}))["streams"]
        async with asyncio.timeout(PATIENCE):
            while await self._is_kept(stream, subject):  # noqa: ASYNC110 - the server's event
                await asyncio.sleep(0.005)

    async def _hear_all(self) -> None:
        await self._client.flush()
        await asyncio.sleep(0)

    async def _hear(self, message: Msg) -> None:
        if message.subject.startswith(_LATER):
            self._kept(message)
        elif message.subject.startswith(_ANSWERED):
            self._answered(message)
        elif message.reply.startswith(_ANSWERED):
            self._delivered(message)

    def _delivered(self, message: Msg) -> None:
        self._pending[_key(message.reply)] = (message.reply, self.clock.now() + self._lease)

    def _answered(self, message: Msg) -> None:
        word, _, rest = message.data.partition(b" ")
        if word == b"+WPI":
            self._pending[_key(message.subject)] = (message.subject, self.clock.now() + self._lease)
        elif word == b"-NAK" and rest:
            until = self.clock.now() + timedelta(microseconds=json.loads(rest)["delay"] // 1000)
            self._pending[_key(message.subject)] = (message.subject, until)
        else:
            self._pending.pop(_key(message.subject), None)

    def _kept(self, message: Msg) -> None:
        due = int((message.headers or {})["rd-due"])
        self._later[message.subject] = (message, datetime.fromtimestamp(due / 1e6, self.clock.now().tzinfo))

    async def _is_kept(self, stream: str, subject: str) -> bool:
        told = await self._ask(f"STREAM.INFO.{stream}", {"subjects_filter": subject})
        return bool(told["state"].get("subjects"))

    async def _ask(self, verb: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self._client.request(f"$JS.API.{verb}", json.dumps(body or {}).encode(), timeout=PATIENCE)
        found: dict[str, Any] = json.loads(answer.data)
        return found


def _key(reply: str) -> str:
    """Stream, consumer and place: the same for every delivery of a message."""
    parts = reply.split(".")
    return ".".join((parts[2], parts[3], parts[5]))


class ListeningClock(ManualClock):
    """A manual clock for programs without an event loop of their own: `advance` moves a server too.

    `run` runs a coroutine to its end, on the loop on which everything else runs.
    """

    def __init__(self, url: str, run: Callable[[Awaitable[None]], object]) -> None:
        super().__init__(datetime.now(UTC) + AHEAD)
        self._run = run
        self._time = NatsTime(url, _Hands(self))
        run(self._time.open())

    def advance(self, delta: Duration) -> None:
        self._run(self._time.elapse(as_duration(delta)))

    def move(self, delta: timedelta) -> None:
        """Only the clock itself."""
        super().advance(delta)

    def close(self) -> None:
        self._run(self._time.aclose())


class _Hands:
    """What a server's time may do to such a clock."""

    def __init__(self, clock: ListeningClock) -> None:
        self._clock = clock
        self.now = clock.now
        self.sleep = clock.sleep

    def advance(self, delta: timedelta) -> None:
        self._clock.move(delta)
