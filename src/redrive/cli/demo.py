"""`redrive demo`: a queue, workers that fail and die, where every message ends up, and the console over it all."""

import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from redrive.cli.output import Exit, complain, tell
from redrive.core.errors import BrokerError, ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from redrive.cli.demo_view import Picture
    from redrive.core.ports import Broker
    from redrive.core.ports.store import Store

FRAME = 0.2  # seconds between two pictures on a terminal
LINE = 1.0  # seconds between two lines elsewhere
BEGIN = 1 / 8  # of the time, until somebody looks at the letters
STORY = 60.0  # seconds in which the story is told at ease, where nobody says how long


async def demo(
    *,
    seconds: Annotated[float | None, Parameter(help="How long; until Ctrl-C unless told.")] = None,
    rate: Annotated[float, Parameter(help="Messages published per second; 40 unless told.")] = 40,
    browser: Annotated[
        bool, Parameter(negative="--no-browser", help="Open the console in a browser, where there is a screen.")
    ] = True,
    json: Annotated[bool, Parameter(help="Print nothing but the end, as JSON.")] = False,
) -> Exit:
    """See it work: a queue, workers that fail and die, and where every message ends up.

    Five queues in an SQLite file in a temporary folder, a producer, and supervised worker processes. Dead letters are
    collected, the worst incident is found and fixed, and sent back, canary first. The console is open all the while,
    for you to do the same. Exits with 0 only if, at the end, published = done + waiting + scheduled + in flight + dead
    + discarded, and what was purged by hand.
    """
    from rich.console import Console

    from redrive.cli.demo_view import account, draw_end, fact

    mistakes = [
        f"{flag}: expected more than 0, got {value:g}"
        for flag, value in (("--seconds", seconds), ("--rate", rate))
        if value is not None and not value > 0
    ]
    if mistakes:
        raise ConfigError(mistakes)
    console = Console(width=None if sys.stdout.isatty() else 110, quiet=json)
    with tempfile.TemporaryDirectory(prefix="redrive-demo-") as folder:
        picture = await _play(
            Path(folder), seconds=seconds, rate=rate, console=console, browser=browser and console.is_terminal
        )
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


async def _play(folder: Path, *, seconds: float | None, rate: float, console: "Console", browser: bool) -> "Picture":
    from redrive.cli.demo_deployment import deploy
    from redrive.cli.demo_stage import Stage
    from redrive.cli.demo_story import Story
    from redrive.cli.demo_worker import DemoWorker
    from redrive.clock import SystemClock
    from redrive.triage.desk import Desk
    from redrive.wiring import connect, open_store

    urls = {"broker": f"sqlite:///{folder}/queue.db", "store": f"sqlite:///{folder}/letters.db"}
    broker, store = connect(urls["broker"]), open_store(urls["store"])
    stage = Stage(broker, store, seconds=seconds, rate=rate)
    worker = DemoWorker(**urls, hear=stage.hear)

    async def bring_version_2() -> None:
        deploy(urls["broker"], version="2")
        await worker.replace()

    story = Story(Desk(store, SystemClock(), "demo"), broker, deploy=bring_version_2)
    stop = _asked_to_stop()
    try:
        async with _opened(broker, store, console=console, browser=browser) as stage.url:
            await stage.set_up()
            await worker.start()
            at_work = asyncio.gather(stage.produce(stop), story.tell(after=(seconds or STORY) * BEGIN))
            with _screen(console) as show:
                while stage.left and not (stop.is_set() or at_work.done() or worker.has_ended):
                    show(story.beside(await stage.look()))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), min(show.every, stage.left))
        stop.set()
        await story.end()
        await at_work
        _refuse_bad_end(await worker.stop(), stage.worker_said)
        return story.beside(await stage.look(settled=True))
    finally:
        await worker.stop()
        await store.aclose()
        await broker.aclose()


@asynccontextmanager
async def _opened(broker: "Broker", store: "Store", *, console: "Console", browser: bool) -> AsyncIterator[str]:
    """The console while the block lasts; its address is the first thing that is told."""
    from redrive.cli.demo_console import open_console, show_in_browser

    async with open_console(broker, store) as address:
        console.print(f"\n  {address.words}\n", style="bold", highlight=False, soft_wrap=True)
        showing = asyncio.create_task(show_in_browser(address.url)) if browser else None
        try:
            yield address.url
        finally:
            if showing is not None:
                showing.cancel()


def _refuse_bad_end(status: int | None, said: Iterable[str]) -> None:
    """Raise `BrokerError` unless the worker ended in good order, or was told to stop before it had begun."""
    if status not in (0, -signal.SIGTERM):
        complain(said)
        raise BrokerError(f"the worker ended with status {status}")


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
        self._told = 0
        self.every = FRAME if live else LINE

    def __call__(self, picture: "Picture") -> None:
        from redrive.cli.demo_view import draw, line

        console = self._console
        if self._live is None:
            console.print(line(picture), highlight=False, soft_wrap=True)
            done = [text for text, done in picture.story if done]
            for text in done[self._told :]:
                console.print(f"         {text}", highlight=False, soft_wrap=True)
            self._told = len(done)
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
