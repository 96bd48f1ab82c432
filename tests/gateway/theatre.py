"""A gateway with its real transport, before a server that fails, in time that a test lets pass."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from redrive.core.errors import GatewayError
from redrive.core.policy import RetrySpec
from redrive.gateway import Gateway, LLMRequest, LLMResponse, ModelConfig, Outside
from redrive.gateway.router import Pending
from redrive.testing import ManualClock, RecordingDeadLetterQueue
from tests.gateway.fault_server import PATIENCE, FaultServer


class Theatre:
    """The gateway's time stands still while calls are in flight, unless a test moves it."""

    def __init__(
        self, gateway: Gateway, server: FaultServer, clock: ManualClock, dlq: RecordingDeadLetterQueue
    ) -> None:
        self.gateway = gateway
        self.server = server
        self.clock = clock
        self.dlq = dlq

    @property
    def in_flight(self) -> int:
        return self.gateway.stats()["fast"].in_flight

    async def settle(self) -> None:
        """Let everything happen until no call is in flight."""
        async with asyncio.timeout(PATIENCE):
            quiet = 0
            while quiet < 5:
                await asyncio.sleep(0)
                quiet = 0 if self.in_flight else quiet + 1

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, with everything that happens at its time on the way."""
        end = self.clock.now() + timedelta(seconds=seconds)
        await self.settle()
        while (wake := self.clock.next_wake_at()) is not None and wake <= end:
            self.clock.advance(max(0.0, (wake - self.clock.now()).total_seconds()))
            await self.settle()
        self.clock.advance(end - self.clock.now())
        await self.settle()

    async def end(self, *futures: Pending) -> list[LLMResponse | BaseException]:
        """Let time pass until all of them have ended; what they ended in."""
        await self.settle()
        while not all(future.done() for future in futures):
            wake = self.clock.next_wake_at()
            assert wake is not None, "nobody waits for anything, and yet not all have ended"
            self.clock.advance(max(0.0, (wake - self.clock.now()).total_seconds()))
            await self.settle()
        return await asyncio.gather(*futures, return_exceptions=True)

    async def ask(self, request: LLMRequest) -> LLMResponse:
        (ended,) = await self.end(await self.gateway.submit(request))
        if isinstance(ended, BaseException):
            raise ended
        return ended

    async def error(self, request: LLMRequest) -> GatewayError:
        (ended,) = await self.end(await self.gateway.submit(request))
        assert isinstance(ended, GatewayError), ended
        return ended


@asynccontextmanager
async def theatre(
    *, policy: RetrySpec = None, log_dir: Path | None = None, seed: int = 5, **model: Any
) -> AsyncIterator[Theatre]:
    """An open gateway with the model `fast`, which is the server."""
    clock, dlq = ManualClock(), RecordingDeadLetterQueue()
    async with FaultServer(clock) as server:
        models = {"fast": ModelConfig(**{"base_url": server.url, "model_name": "model-1", **model})}
        outside = Outside(clock=clock, random=Random(seed))
        async with Gateway(models, policy=policy, log_dir=log_dir, dlq=dlq, outside=outside) as gateway:
            yield Theatre(gateway, server, clock, dlq)


def a_request(name: str = "r1", **fields: Any) -> LLMRequest:
    """A request that says its own name."""
    messages = [{"role": "user", "content": name}]
    return LLMRequest(**{"request_id": name, "agent_id": "planner", "model": "fast", "messages": messages, **fields})


def some(count: int, **fields: Any) -> list[LLMRequest]:
    return [a_request(f"r{number}", **fields) for number in range(count)]
