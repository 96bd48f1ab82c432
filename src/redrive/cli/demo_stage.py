"""The demo while it runs: a producer, a worker process under its supervisor, and what is seen of both."""

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from redrive.cli.demo_fates import FATES, GROUP, Fate, in_turn, payload
from redrive.cli.demo_view import Count, News, Picture
from redrive.core.errors import BrokerError
from redrive.core.message import Message
from redrive.core.ports import Broker, Options

PROCESSES = 2
TICK = 0.1
PAGE = 200
LONGEST_LINE = 1024 * 1024
PATIENCE = 15.0  # seconds for the worker to stop in good order


class Stage:
    """What the demo knows: its own count of what it published, and what it saw of the rest."""

    def __init__(self, broker: Broker, *, seconds: float, rate: float) -> None:
        self._broker = broker
        self._seconds = seconds
        self._rate = rate
        self._begun = time.monotonic()
        self._published: Counter[str] = Counter()
        self._letters: Counter[tuple[str, str]] = Counter()
        self._last_entry: dict[str, str] = {}
        self._news: deque[News] = deque(maxlen=40)
        self._deaths = 0
        self.worker_said: deque[str] = deque(maxlen=5)
        """Its last lines that were no log lines: a traceback, if it could not start."""

    @property
    def elapsed(self) -> float:
        """Seconds since the curtain rose."""
        return time.monotonic() - self._begun

    async def set_up(self) -> None:
        """Make every queue and its group, so that there is something to count from the start."""
        for fate in FATES:
            for queue in (fate.queue, fate.receipts):
                subscription = await self._broker.subscribe(queue, group=GROUP, options=Options(owner="demo"))
                await subscription.aclose()

    async def produce(self, stop: asyncio.Event) -> None:
        """Publish at the rate; count what the broker has confirmed. Never ends between the two."""
        fates = in_turn()
        made = 0
        while not stop.is_set():
            due: dict[Fate, int] = Counter(next(fates) for _ in range(int(self._rate * self.elapsed) - made))
            for fate, number in due.items():
                first = self._published[fate.queue] + 1
                bodies = (payload(fate, one) for one in range(first, first + number))
                messages = [Message("", fate.queue, body) for body in bodies]
                self._published[fate.queue] += len(await self._broker.publish(fate.queue, messages))
                made += number
            await asyncio.sleep(TICK)

    async def listen(self, lines: asyncio.StreamReader) -> None:
        """Read the worker's log until it ends."""
        async for raw in lines:
            text = raw.decode("utf-8", "replace").rstrip()
            try:
                said = json.loads(text)
            except ValueError:
                self.worker_said.append(text)
                continue
            self._deaths += said.get("message") == "worker died"
            if news := _news(said):
                self._news.append(news)

    async def look(self) -> Picture:
        """Where every message is now."""
        counts = {}
        due = []
        for fate in FATES:
            depth = await self._broker.depth(fate.queue, group=GROUP)
            receipts = await self._broker.depth(fate.receipts, group=GROUP)
            await self._read_letters(fate)
            counts[fate.queue] = Count(
                published=self._published[fate.queue],
                done=receipts.waiting,
                waiting=depth.waiting,
                scheduled=depth.scheduled,
                in_flight=depth.in_flight,
                dead=depth.dead,
            )
            due += [depth.next_due_at] if depth.next_due_at else []
        return Picture(
            elapsed=self.elapsed,
            seconds=self._seconds,
            counts=counts,
            stories={fate.queue: fate.story for fate in FATES},
            letters=dict(self._letters),
            news=tuple(self._news),
            next_due=(min(due) - datetime.now(UTC)).total_seconds() if due else None,
            deaths=self._deaths,
        )

    async def _read_letters(self, fate: Fate) -> None:
        dlq = self._broker.dead_letters(fate.queue)
        while True:
            start = self._last_entry.get(fate.queue)
            entries = await dlq.peek(PAGE, start=start)
            fresh = entries[1:] if start is not None and entries else entries
            for entry in fresh:
                error = entry.letter.error_type.rpartition(".")[2]
                self._letters[error, entry.letter.reason.value] += 1
                self._last_entry[fate.queue] = entry.entry_id
            if len(entries) < PAGE:
                return


@asynccontextmanager
async def worker_process(url: str, stage: Stage) -> AsyncIterator[asyncio.subprocess.Process]:
    """`redrive worker` on the demo's app, in a session of its own; stopped in good order at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "redrive.cli", "worker", "redrive.cli.demo_app:app"),
        *("--processes", str(PROCESSES)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
        env={
            **os.environ,
            "REDRIVE_CONFIG": os.devnull,
            "REDRIVE_BROKER": url,
            "REDRIVE_LOG_FORMAT": "json",
            "REDRIVE_LOG_LEVEL": "info",
        },
        start_new_session=True,  # Ctrl-C is for the demo, which then tells the worker
    )
    if process.stderr is None:
        raise BrokerError("the worker's log cannot be read")
    listening = asyncio.create_task(stage.listen(process.stderr))
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(PATIENCE):
                await process.wait()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await listening


def _news(said: dict[str, Any]) -> News | None:
    error = str(said.get("error_type", "")).rpartition(".")[2]
    match said.get("message"):
        case "will retry":
            text = f"{error} at attempt {said['attempt']}, again in {said['retry_in']:.1f} s"
        case "dead letter":
            text = f"{error}: given up, {said['reason'].replace('_', ' ')}"
        case "suspect runs alone" if said["crashes"]:
            text = f"a message that killed its process runs alone, time {said['crashes'] + 1}"
        case "worker died":
            text = f"a process died: {said['text']}"
        case "consumer paused":
            text = f"paused: {said['why']}"
        case "consumer resumed":
            text = "resumed"
        case _:
            return None
    at = datetime.fromisoformat(said["timestamp"]).astimezone()
    return News(f"{at:%H:%M:%S}", said.get("queue", "worker"), text)
