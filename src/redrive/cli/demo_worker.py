"""The demo's worker: `redrive worker` on the demo's app, in a session of its own; what it logs is heard."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from redrive.core.errors import BrokerError

PROCESSES = 2
LONGEST_LINE = 1024 * 1024
PATIENCE = 15.0  # seconds for the worker to stop in good order


class DemoWorker:
    """A worker that can be started anew, as a deployment does. `hear` gets each line of its log."""

    def __init__(self, *, broker: str, store: str, hear: Callable[[str], None]) -> None:
        self._settings = {
            "REDRIVE_CONFIG": os.devnull,
            "REDRIVE_BROKER": broker,
            "REDRIVE_STORE": store,
            "REDRIVE_LOG_FORMAT": "json",
            "REDRIVE_LOG_LEVEL": "info",
        }
        self._hear = hear
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it. It works until it is stopped."""
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "redrive.cli", "worker", "redrive.cli.demo_app:app"),
            *("--processes", str(PROCESSES)),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env={**os.environ, **self._settings},
            start_new_session=True,  # Ctrl-C is for the demo, which then tells the worker
        )
        if process.stderr is None:
            raise BrokerError("the worker's log cannot be read")
        self._listening = asyncio.create_task(self._listen(process.stderr))

    async def replace(self) -> None:
        """Start another one, then stop the one there is: a deployment."""
        process, listening = self._process, self._listening
        await self.start()
        await _stop(process, listening)

    async def stop(self) -> int | None:
        """Stop it in good order, and return its exit status; None if it was not started. Idempotent."""
        process, self._process = self._process, None
        return await _stop(process, self._listening)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself, which it should not."""
        return self._process is not None and self._process.returncode is not None

    async def _listen(self, lines: asyncio.StreamReader) -> None:
        async for raw in lines:
            self._hear(raw.decode("utf-8", "replace").rstrip())


async def _stop(process: asyncio.subprocess.Process | None, listening: asyncio.Task[None] | None) -> int | None:
    if process is None or listening is None:
        return None
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(PATIENCE):
            await process.wait()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    await listening
    return process.returncode
