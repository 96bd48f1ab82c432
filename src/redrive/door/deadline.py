"""How long an answer may take to begin: a store that hangs must not keep whoever asks hanging too."""

import asyncio
from contextlib import suppress
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redrive.door.limits import STREAMED
from redrive.door.problems import RETRY_AFTER, refuse

READ_WITHIN = 10.0  # seconds
CHANGE_WITHIN = 60.0  # a purge of very many letters takes its time
_READING = ("GET", "HEAD")


class Deadline:
    """Answers 503 where no answer has begun in time, so many seconds for what reads, so many for what changes.

    The time in which a client sends its body does not count, nor does anything after the first byte of the answer, or
    after that of an import. What was asked for is not broken off: half of a change is worse than one that nobody
    hears of. So the answer does not say that nothing was done, and only a reader is told to ask again.
    """

    def __init__(self, app: ASGIApp, *, reading: float, changing: float) -> None:
        self._app = app
        self._reading = reading
        self._changing = changing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reads = scope["method"] in _READING
        within = self._reading if reads else self._changing
        answer = _Answer(receive, send, within=within, streamed=scope["path"] in STREAMED)
        handling = asyncio.ensure_future(self._app(scope, answer.receive, answer.send))
        try:
            await asyncio.wait([handling, answer.late], return_when=asyncio.FIRST_COMPLETED)
            if answer.late.done():
                said = f"no answer within {within:g} seconds; what was asked may still be done"
                headers = {"Retry-After": RETRY_AFTER} if reads else None
                status = HTTPStatus.SERVICE_UNAVAILABLE
                await refuse(scope, receive, send, status=status, detail=said, headers=headers)
            with suppress(_TooLate):
                await handling
        finally:
            answer.stop()
            handling.cancel()


class _TooLate(Exception):
    """Another answer has been given."""


class _Answer:
    """One answer to come; `late` is done if it did not begin in time."""

    def __init__(self, receive: Receive, send: Send, *, within: float, streamed: bool) -> None:
        self._receive = receive
        self._send = send
        self._within = within
        self._streamed = streamed
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_heard = False  # the body, to its end
        self.late: asyncio.Future[None] = self._loop.create_future()
        self._start()

    async def receive(self) -> Message:
        if self._is_heard:
            return await self._receive()
        self.stop()
        message = await self._receive()
        self._is_heard = self._streamed or not message.get("more_body", False)
        if not self._streamed:
            self._start()
        return message

    async def send(self, message: Message) -> None:
        if self.late.done():
            raise _TooLate
        self.stop()
        self._is_heard = True
        await self._send(message)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        self._timer = self._loop.call_later(self._within, self._end)

    def _end(self) -> None:
        if not self.late.done():
            self.late.set_result(None)
