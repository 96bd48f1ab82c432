"""A supervised process: works on an app's queues, runs its suspects, or the way back; tells that it turns.

Started by `redrive worker`, not by people.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

from redrive.app import App, load_app
from redrive.config import load_settings
from redrive.core.errors import ConfigError, RedriveError
from redrive.core.ports import Obituary
from redrive.observe.bus import Subscriber
from redrive.observe.event_log import EventLog
from redrive.observe.logs import set_up_logs
from redrive.wiring import event_loop_factory, freeze_startup
from redrive.worker.crew import GRACE, Crew
from redrive.worker.current import current_delivery
from redrive.worker.supervisor import BAD_CONFIG, SOON, Order, Role

BEAT = 0.5
TRY_AGAIN = 3  # exit status of a child that could not reach its broker


def arguments(target: str, order: Order, *, metrics: Path | None) -> list[str]:
    """The argument list that starts such a process."""
    words = [sys.executable, "-m", __name__, target, "--role", order.role, "--pipe", str(order.pipe)]
    if order.obituary is not None:
        words += ["--late", order.obituary.owner, "--epitaph", order.obituary.text]
    if metrics is not None:
        words += ["--metrics", str(metrics), "--slot", str(order.index)]
    return words


class Channel:
    """The pipe to the supervisor. Its loss means that the supervisor is gone."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        os.set_inheritable(pipe, False)
        os.set_blocking(pipe, False)

    def tell(self, **words: object) -> bool:
        """Send a line; False if nobody is there to hear it."""
        try:
            os.write(self._pipe, json.dumps(words).encode() + b"\n")
        except BlockingIOError:
            return True  # it is there, and will read
        except OSError:
            return False
        return True


def main() -> None:
    """Run until told to stop, or until the supervisor is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--role", type=Role, required=True)
    parser.add_argument("--pipe", type=int, required=True)
    parser.add_argument("--late", default="")
    parser.add_argument("--epitaph", default="")
    parser.add_argument("--metrics", type=Path)
    parser.add_argument("--slot", default="")
    given = parser.parse_args()
    try:
        settings = load_settings()
        set_up_logs(level=settings.log_level, form=settings.log_format, color=settings.color, delivery=current_delivery)
        metrics = (
            None if given.metrics is None else _metrics_in(given.metrics, slot=given.slot, label=settings.metrics_label)
        )
        app = load_app(given.target)
        app.bus.subscribe(EventLog())
        if metrics is not None:
            app.bus.subscribe(metrics)
        with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
            runner.run(_serve(app, Channel(given.pipe), given))
    except RedriveError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"redrive: {line}\n")
        sys.exit(BAD_CONFIG if isinstance(error, ConfigError) else TRY_AGAIN)


async def _serve(app: App, channel: Channel, given: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    match given.role:
        case Role.SUSPECTS:
            obituary = Obituary(given.late, given.epitaph) if given.late else None
            async with app.suspects(obituary=obituary) as crew, _beating(channel, stop, crew):
                await crew.run_suspects(stop)
        case Role.COLLECTOR:
            async with app.way_back() as begun, _beating(channel, stop):
                if begun:
                    await stop.wait()
        case Role.WORKER:
            async with app.worker(takes_suspects=False) as crew, _beating(channel, stop, crew):
                freeze_startup()
                await stop.wait()


@contextlib.asynccontextmanager
async def _beating(channel: Channel, stop: asyncio.Event, crew: Crew | None = None) -> AsyncIterator[None]:
    owner, grace = (crew.owner, crew.grace) if crew else (f"collector {os.getpid()}", GRACE)

    async def beat() -> None:
        said = {"owner": owner, "grace": grace.total_seconds()}
        while channel.tell(**said, suspects=crew.suspects_waiting if crew else 0):  # noqa: ASYNC110 - a beat is a beat
            await asyncio.sleep(BEAT)
        stop.set()
        _die_after(grace.total_seconds() + SOON)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()


def _die_after(seconds: float) -> None:
    """Do what the supervisor would do, which is gone. Not in the event loop: it may be the loop that does not end."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


def _metrics_in(folder: Path, *, slot: str, label: str | None) -> Subscriber:
    """Count in the folder that the supervisor serves; made before the app is loaded, whose own metrics join it."""
    from prometheus_client import CollectorRegistry

    from redrive.observe.metrics import Metrics
    from redrive.observe.shared_metrics import count_in

    known = count_in(folder, slot=slot)
    return Metrics(CollectorRegistry(), label=label, known=known)


if __name__ == "__main__":
    main()
