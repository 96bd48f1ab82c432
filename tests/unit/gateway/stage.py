"""A gateway on a manual clock, with a provider that does what a test says."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from redrive.core.errors import GatewayError
from redrive.core.event import Event
from redrive.core.policy import RetrySpec
from redrive.gateway import Gateway, LLMRequest, LLMResponse, ModelConfig, Outside, Post, Reply, StreamedReply
from redrive.testing import ManualClock, RecordingDeadLetterQueue

JSON = {"content-type": "application/json"}

Said = Reply | BaseException


def answer(text: str = "hello", *, tokens: tuple[int, int] | None = (5, 7), **headers: str) -> Reply:
    """A good answer, in the OpenAI form."""
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}}
    body = {
        "id": "chatcmpl-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        **usage,
    }
    return Reply(200, {**JSON, **headers}, json.dumps(body).encode())


def refusal(status: int, code: str = "", headers: Mapping[str, str] | None = None, words: str = "no") -> Reply:
    """An error, in the OpenAI form."""
    body = {"error": {"message": words, "type": code or None, "code": code or None}}
    return Reply(status, {**JSON, **(headers or {})}, json.dumps(body).encode())


def a_request(request_id: str = "r1", **fields: Any) -> LLMRequest:
    given = {"agent_id": "planner", "model": "fast", "messages": [{"role": "user", "content": "hi"}], **fields}
    return LLMRequest(request_id=request_id, **given)


def a_model(**fields: Any) -> ModelConfig:
    return ModelConfig(**{"base_url": "http://provider.test/v1", "model_name": "model-1", **fields})


class Provider:
    """A `Transport`: says what it was told to say, in order, then what `always` says. Remembers what it was sent."""

    def __init__(self, *said: Said, always: Callable[[Post], Said | Awaitable[Said]] | Said | None = None) -> None:
        self._said = [*said]
        self._always = always or answer()
        self.posts: list[Post] = []
        self.broken_off = 0
        self.closed = False

    async def post(self, post: Post) -> Reply:
        self.posts.append(post)
        said: Any = self._said.pop(0) if self._said else self._always
        try:
            if callable(said):
                said = said(post)
            if isinstance(said, Awaitable):
                said = await said
            else:
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.broken_off += 1
            raise
        if isinstance(said, BaseException):
            raise said
        assert isinstance(said, Reply)
        return said

    @asynccontextmanager
    async def stream(self, post: Post) -> AsyncIterator[StreamedReply]:
        reply = await self.post(post)

        async def chunks() -> AsyncIterator[bytes]:
            yield reply.body

        yield StreamedReply(reply.status, reply.headers, chunks())

    async def aclose(self) -> None:
        self.closed = True

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(post.body) for post in self.posts]


class Listener:
    """An `EventSink` that remembers."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


class Stage:
    """A gateway and all that is around it."""

    def __init__(self, gateway: Gateway, provider: Provider, clock: ManualClock, dlq: RecordingDeadLetterQueue) -> None:
        self.gateway = gateway
        self.provider = provider
        self.clock = clock
        self.dlq = dlq
        self.listener = Listener()

    async def settle(self) -> None:
        """Let everything happen that happens without time passing."""
        for _ in range(30):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, with everything that happens at its time on the way."""
        await self.settle()
        end = self.clock.now().timestamp() + seconds
        while (wake := self.clock.next_wake_at()) is not None and wake.timestamp() <= end:
            self.clock.advance(max(0.0, (wake - self.clock.now()).total_seconds()))
            await self.settle()
        self.clock.advance(max(0.0, end - self.clock.now().timestamp()))
        await self.settle()

    async def end(self, *futures: asyncio.Future[LLMResponse], step: float = 0) -> list[LLMResponse | BaseException]:
        """Let time pass until all of them have ended, by so many seconds at least each time; what they ended in."""
        await self.settle()
        while not all(future.done() for future in futures):
            wake = self.clock.next_wake_at()
            if wake is None and any(one.in_flight for one in self.gateway.stats().values()):
                await self.settle()
                continue
            assert wake is not None, "nobody waits for anything, and yet not all have ended"
            self.clock.advance(max(step, (wake - self.clock.now()).total_seconds()))
            await self.settle()
        return await asyncio.gather(*futures, return_exceptions=True)

    async def ask(self, request: LLMRequest) -> LLMResponse:
        """The answer, however long it takes."""
        (ended,) = await self.end(await self.gateway.submit(request))
        if isinstance(ended, BaseException):
            raise ended
        return ended

    async def error(self, request: LLMRequest) -> GatewayError:
        """The error that a request ends in."""
        (ended,) = await self.end(await self.gateway.submit(request))
        assert isinstance(ended, GatewayError)
        return ended


@asynccontextmanager
async def on_stage(
    provider: Provider,
    *,
    models: Mapping[str, ModelConfig] | None = None,
    policy: RetrySpec = None,
    log_dir: Path | None = None,
    dlq: RecordingDeadLetterQueue | None = None,
    **model: Any,
) -> AsyncIterator[Stage]:
    """An open gateway with the model `fast`."""
    clock = ManualClock()
    letters = dlq or RecordingDeadLetterQueue()
    listener = Listener()
    gateway = Gateway(
        models or {"fast": a_model(**model)},
        policy=policy,
        log_dir=log_dir,
        dlq=letters,
        outside=Outside(transport=provider, clock=clock, random=Random(7), sink=listener),
    )
    async with gateway:
        stage = Stage(gateway, provider, clock, letters)
        stage.listener = listener
        yield stage


def rows(log_dir: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a journal file."""
    path = log_dir / "gateway" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def kinds(ended: Sequence[object]) -> list[str]:
    """What requests ended in, by name."""
    return [type(one).__name__ for one in ended]
