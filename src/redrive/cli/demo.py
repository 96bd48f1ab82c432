"""`redrive demo`: a queue, workers that fail and die, and where every message ends up."""

import asyncio
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from redrive.cli.output import Exit, complain, tell
from redrive.core.errors import BrokerError, ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from redrive.cli.demo_view import Picture

FRAME = 0.2  # seconds between two pictures on a terminal
LINE = 1.0  # seconds between two lines elsewhere


async def demo(
    *,
    seconds: Annotated[float, Parameter(help="How long; a minute unless told. Ctrl-C ends it sooner.")] = 60,
    rate: Annotated[float, Parameter(help="Messages published per second; 40 unless told.")] = 40,
    json: Annotated[bool, Parameter(help="Print nothing but the end, as JSON.")] = False,
) -> Exit:
    """See it work: a queue, workers that fail and die, and where every message ends up.

    Five queues in an SQLite file in a temporary folder, a producer, and supervised worker processes. Exits with
    0 only if, at the end, published = done + waiting + scheduled + in flight + dead.
    """
    from rich.console import Console

    from redrive.cli.demo_view import account, draw_end, fact

    mistakes = [
        f"{flag}: expected more than 0, got {value:g}"
        for flag, value in (("--seconds", seconds), ("--rate", rate))
        if not value > 0
    ]
    if mistakes:
        raise ConfigError(mistakes)
    console = Console(width=None if sys.stdout.isatty() else 110, quiet=json)
    with tempfile.TemporaryDirectory(prefix="redrive-demo-") as folder:
        picture = await _play(Path(folder) / "queue.db", seconds=seconds, rate=rate, console=console)
    if json:
        tell(fact(picture), "", as_json=True)
    else:
        with console.capture() as drawn:
            console.print(draw_end(picture, width=console.width))
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in drawn.get().splitlines())
    right = picture.total.published == picture.total.placed
    if not right:
        complain([account(picture.total)])
    return Exit.OK if right else Exit.NO


async def _play(path: Path, *, seconds: float, rate: float, console: "Console") -> "Picture":
    from redrive.cli.demo_stage import Stage, worker_process
    from redrive.wiring import connect

    url = f"sqlite:///{path}"
    broker = connect(url)
    try:
        stage = Stage(broker, seconds=seconds, rate=rate)
        await stage.set_up()
        stop = _asked_to_stop()
        async with worker_process(url, stage) as worker:
            producing = asyncio.create_task(stage.produce(stop))
            with _screen(console) as show:
                while not (stop.is_set() or producing.done() or worker.returncode is not None):
                    show(await stage.look())
                    with suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), min(show.every, max(0, seconds - stage.elapsed)))
                    if stage.elapsed >= seconds:
                        stop.set()
            stop.set()
            await producing
        if worker.returncode not in (0, -signal.SIGTERM):  # the latter: told to stop before it had begun
            complain(stage.worker_said)
            raise BrokerError(f"the worker ended with status {worker.returncode}")
        return await stage.look()
    finally:
        await broker.aclose()


def _asked_to_stop() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


class Screen:
    """Shows one picture after the other: drawn over the last on a terminal, a line each elsewhere."""

    def __init__(self, console: "Console", live: "Live | None") -> None:
        self._console = console
        self._live = live
        self.every = FRAME if live else LINE

    def __call__(self, picture: "Picture") -> None:
        from redrive.cli.demo_view import draw, line

        console = self._console
        if self._live is None:
            console.print(line(picture), highlight=False)
        else:
            self._live.update(draw(picture, width=console.width, height=console.height), refresh=True)


@contextmanager
def _screen(console: "Console") -> Iterator[Screen]:
    from rich.live import Live

    if not sys.stdout.isatty() or console.is_dumb_terminal or console.quiet:
        yield Screen(console, None)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield Screen(console, live)
