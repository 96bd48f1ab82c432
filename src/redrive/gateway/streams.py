"""Answers that come bit by bit: put together on one side, handed out on the other."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from redrive.core.errors import BadAnswer, GatewayError, StreamInterrupted
from redrive.gateway.classify import error_inside
from redrive.gateway.request import LLMResponse, Usage
from redrive.gateway.sse import ServerEvent
from redrive.gateway.wire import Answer, Part, Wire


class Delta(NamedTuple):
    """A bit of an answer: its text, which may be empty, and the provider's event."""

    text: str
    raw: Mapping[str, Any]


class Channel:
    """Where the bits of one request's answer go. What comes before the first word is held back until it is there.

    As long as nothing was handed out, the request can be sent again, and `begin` forgets what was held back.
    """

    def __init__(self) -> None:
        self._held: list[Delta] = []
        self._words: list[str] = []
        self.queue: asyncio.Queue[Delta | None] = asyncio.Queue()
        self.started = False

    @property
    def text(self) -> str:
        """What was handed out so far."""
        return "".join(self._words)

    def begin(self) -> None:
        """A new attempt."""
        self._held.clear()

    def put(self, delta: Delta, *, words: bool) -> None:
        """A bit has come, with `words` if there is something in it that a caller would miss."""
        self._held.append(delta)
        if words or self.started:
            self.flush()

    def flush(self) -> None:
        """Hand out what was held back."""
        self.started = True
        for delta in self._held:
            self._words.append(delta.text)
            self.queue.put_nowait(delta)
        self._held.clear()

    def interrupted(self, error: GatewayError) -> GatewayError:
        """What an error means for this answer: one that has begun is broken off for good."""
        if not self.started or isinstance(error, StreamInterrupted):
            return error
        broken = StreamInterrupted(f"the answer broke off: {error}"[:500], possibly_executed=True)
        broken.partial = self.text
        broken.status_code, broken.code = error.status_code, error.code
        broken.provider_request_id = error.provider_request_id
        broken.__cause__ = error
        return broken


class StreamedAnswer:
    """Puts an answer together from its events."""

    def __init__(self, wire: Wire, channel: Channel, *, headers: Mapping[str, str]) -> None:
        self._wire = wire
        self._channel = channel
        self._headers = headers
        self._finish = ""
        self._spoke: set[int] = set()
        self._finished: set[int] = set()
        self._usage: Usage | None = None
        self._last: Mapping[str, Any] = {}
        self._done = False

    def take(self, event: ServerEvent, *, now: datetime) -> bool:
        """An event has come; False if it only keeps the line alive.

        Raises what an error in it stands for, and `BadAnswer` for one that cannot be read.
        """
        if self._done:
            return False
        if event.data == "[DONE]":
            self._done = True
            return True
        try:
            raw = msgspec.json.decode(event.data)
        except (msgspec.MsgspecError, RecursionError):
            raw = None
        if not isinstance(raw, dict):
            raise BadAnswer("an event of the answer is no JSON object")
        if raw.get("error"):
            raise error_inside(raw, self._headers, now=now)
        part = self._wire.part(raw)
        self._last = raw
        self._note(part)
        self._channel.put(Delta(part.text, raw), words=part.words)
        return not part.nothing

    def answer(self) -> Answer:
        """The whole answer. Raises `BadAnswer` if its end has not come: a cut answer is never a success."""
        if not self._done and not (self._finish and self._spoke <= self._finished):
            raise BadAnswer("the answer ended before its end", possibly_executed=True)
        self._channel.flush()
        return Answer(self._channel.text, self._finish, self._usage, self._last)

    def _note(self, part: Part) -> None:
        self._finish = part.finish_reason or self._finish
        self._done = self._done or part.done
        self._spoke |= part.spoke
        self._finished |= part.finished
        if part.usage is not None:
            known = self._usage or Usage()
            self._usage = Usage(*(max(pair) for pair in zip(known, part.usage, strict=True)))


class AnswerStream:
    """The bits of an answer as they come: `async with gateway.stream(request) as stream`, then `async for`.

    The loop ends with the answer, which is `response` then, or raises the request's error. Leaving the context calls
    the request off, if it has not ended.
    """

    def __init__(self, future: "asyncio.Future[LLMResponse]", channel: Channel) -> None:
        self._future = future
        self._channel = channel
        future.add_done_callback(lambda _: channel.queue.put_nowait(None))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._future.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        delta = await self._channel.queue.get()
        if delta is not None:
            return delta
        self._channel.queue.put_nowait(None)
        self._future.result()
        raise StopAsyncIteration

    @property
    def response(self) -> LLMResponse:
        """The whole answer. Raises the request's error, and `InvalidStateError` if it has not ended."""
        return self._future.result()
