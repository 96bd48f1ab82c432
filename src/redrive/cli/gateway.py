"""`redrive gateway`: ask models, with the manners of messages."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from redrive.cli.blame import blamed_on
from redrive.cli.bulk import show_progress
from redrive.cli.output import Exit, tell
from redrive.cli.signals import until_told

if TYPE_CHECKING:
    from redrive.config import Settings
    from redrive.gateway import Gateway
    from redrive.observe.bus import Bus

gateway = App(name="gateway", help="Ask models, with limits, retries and dead letters.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Models:
    """Which models there are, where their dead letters and journal go, and who looks at them."""

    models: Annotated[Path, Parameter(help="The TOML file with a table [models.NAME] for each.")] = Path("models.toml")
    broker: Annotated[str | None, Parameter(help="The broker for letters, and for those that are redriven.")] = None
    log_dir: Annotated[Path | None, Parameter(help="The folder of the journal; none is written unless told.")] = None
    metrics_port: Annotated[int | None, Parameter(help="Answer Prometheus here.")] = None
    tracing: Annotated[bool, Parameter(help="Make spans, with the OpenTelemetry that the process has.")] = False
    json: Annotated[bool, Parameter(help="Tell it as JSON.")] = False


USUAL = Models()


@gateway.command
async def run(
    requests: Annotated[Path, Parameter(help="A JSON Lines file, a request in each line.")],
    /,
    *,
    model: Annotated[str, Parameter(help="The model of requests that name none.")],
    output: Annotated[Path, Parameter(name=("--output", "-o"), help="The file of the answers.")],
    at: Models = USUAL,
) -> int:
    """Answer a file of requests. Run again, it sends only what has no answer yet."""
    from redrive.gateway.batch_file import BatchFile, Tally

    seen = 0
    with show_progress("answering", total=_lines_in(requests)) as advance:

        def progress(tally: Tally) -> None:
            nonlocal seen
            done = tally.before + tally.answered + tally.failed
            advance(done - seen)
            seen = done

        async with _opened(at) as opened:
            tally = await BatchFile(requests, output, model=model).run(opened, progress=progress)
    text = f"{tally.before + tally.answered} of {tally.total} answered, {tally.failed} failed: {output}"
    tell(asdict(tally), text, as_json=at.json)
    return Exit.NO if tally.failed else Exit.OK


@gateway.command
async def serve(
    *,
    host: Annotated[str, Parameter(help="The address to listen on, also of the metrics.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port, 0 for any that is free.")] = 8801,
    at: Models = USUAL,
) -> None:
    """Answer the OpenAI form in front of the models, until SIGTERM or SIGINT. There is no key to this door."""
    from redrive.gateway.front_door import FrontDoor
    from redrive.wiring import answering, freeze_startup

    async with AsyncExitStack() as opening:
        opened = await opening.enter_async_context(_opened(at, host=host))
        if opened.durable is not None:  # letters that are redriven come back here, and the console sees how it stands
            await opening.enter_async_context(answering(opened))
        door = await opening.enter_async_context(FrontDoor(opened, host=host, port=port))
        freeze_startup()
        tell({"url": door.url}, f"listening on {door.url}", as_json=at.json)
        await until_told(asyncio.Event().wait())


@asynccontextmanager
async def _opened(at: Models, *, host: str = "127.0.0.1") -> AsyncIterator["Gateway"]:
    """A gateway that is seen like a worker: one bus for itself, its broker, and the worker that may answer for it."""
    from redrive.config import load_settings
    from redrive.core.ports.answers import KeepsAnswers
    from redrive.gateway import Gateway, Outside
    from redrive.gateway.models_file import read_models_file
    from redrive.observe.bus import Bus
    from redrive.observe.event_log import EventLog
    from redrive.wiring import connect, tracing
    from redrive.worker.dead_letter_queues import BrokerDeadLetterQueue

    settings = load_settings()
    _set_up_logs(settings)
    models, bus = read_models_file(at.models), Bus(EventLog())
    broker = None if at.broker is None else connect(at.broker, sink=bus)
    dlq = None if broker is None else BrokerDeadLetterQueue(broker)
    keeper = broker if isinstance(broker, KeepsAnswers) else None
    try:
        outside = Outside(sink=bus, tracing=tracing(broker) if at.tracing else None)
        with _counted(bus, at, host=host, label=settings.metrics_label):
            async with Gateway(models, log_dir=at.log_dir, broker=keeper, dlq=dlq, outside=outside) as opened:
                yield opened
    finally:
        if dlq is not None:
            await dlq.aclose()


def _set_up_logs(settings: "Settings") -> None:
    from redrive.observe.logs import set_up_logs

    set_up_logs(level=settings.log_level, form=settings.log_format, color=settings.color)


@contextmanager
def _counted(bus: "Bus", at: Models, *, host: str, label: str | None) -> Iterator[None]:
    """What the bus hears as metrics, if they are asked for. Raises `ConfigError`."""
    if at.metrics_port is None:
        yield
        return
    from prometheus_client import CollectorRegistry

    from redrive.observe.metrics import Metrics, serve_metrics

    registry = CollectorRegistry()
    bus.subscribe(Metrics(registry, label=label))
    with blamed_on("--metrics-port"):
        stop = serve_metrics(registry, at.metrics_port, host=host)
    try:
        yield
    finally:
        stop()


def _lines_in(requests: Path) -> int:
    """How many requests there are; a file that cannot be read is told of by who reads it."""
    try:
        with requests.open("rb") as file:
            return sum(1 for line in file if line.strip())
    except OSError:
        return 0
