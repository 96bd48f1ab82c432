"""The desk of a durable gateway: where requests are submitted and answers fetched, apart from those who answer."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from redrive import connect
from redrive.clock import SystemClock
from redrive.core.ports import Broker, DeadEntry
from redrive.gateway.durable import DurableGateway, answers_of
from tests.gateway.fault_server import PATIENCE, FaultServer

ROOT = Path(__file__).parents[2]
CLOCK = SystemClock()


@dataclass
class Desk:
    """A durable gateway without a worker, its broker, and the provider that workers ask."""

    gateway: DurableGateway
    broker: Broker
    server: FaultServer
    url: str

    async def letter(self) -> DeadEntry:
        """The first letter, waited for."""
        while not (entries := await self.broker.dead_letters("llm.fast").peek()):  # noqa: ASYNC110 - written elsewhere
            await asyncio.sleep(0.02)
        return entries[0]

    def start(self) -> subprocess.Popen[bytes]:
        """A worker in a process of its own."""
        command = [sys.executable, "-m", "tests.gateway.durable_worker", self.url, self.server.url]
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


@asynccontextmanager
async def a_desk(url: str) -> AsyncIterator[Desk]:
    """A desk at the broker of this URL."""
    broker = connect(url)
    answers = answers_of(broker)
    async with FaultServer(CLOCK) as server, asyncio.timeout(3 * PATIENCE):
        yield Desk(DurableGateway(broker, answers, clock=CLOCK), broker, server, url)
    await answers.aclose()
    await broker.aclose()
