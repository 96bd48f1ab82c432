"""`redrive worker`: an app's consumers in supervised processes."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from redrive.cli.blame import blamed_on
from redrive.core.errors import ConfigError
from redrive.observe.bus import Bus, Subscriber


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Probes:
    """How the outside looks at a worker."""

    metrics_port: Annotated[int | None, Parameter(help="Answer Prometheus here, for all processes together.")] = None
    health_port: Annotated[
        int | None, Parameter(help="Answer GET /healthz here: 200 while every process turns, else 503.")
    ] = None
    liveness_file: Annotated[Path | None, Parameter(help="A file to be touched while every process turns.")] = None
    host: Annotated[str, Parameter(help="The address of both ports; 127.0.0.1 unless told.")] = "127.0.0.1"


UNSEEN = Probes()


def worker(
    app: Annotated[str, Parameter(help="Where the app is: module:attribute, such as first:app.")],
    /,
    *,
    processes: Annotated[int, Parameter(help="How many worker processes; 1 unless told.")] = 1,
    no_collect: Annotated[
        bool, Parameter(help="Leave dead letters in the DLQ, and redrives to others; matters on SQLite only.")
    ] = False,
    probes: Probes = UNSEEN,
) -> int:
    """Run an app's consumers in supervised processes, until SIGTERM or SIGINT.

    A process that dies is started anew. Messages that may have killed it run alone, in a process of their own. On
    an SQLite broker one process more collects dead letters into the store and carries out redrives.
    """
    from redrive.cli.child import arguments
    from redrive.config import load_settings
    from redrive.observe.event_log import EventLog
    from redrive.observe.logs import set_up_logs
    from redrive.worker.supervisor import Order, Supervisor

    if processes < 1:
        raise ConfigError(f"--processes: expected at least 1, got {processes}")
    settings = load_settings()
    set_up_logs(level=settings.log_level, form=settings.log_format, color=settings.color)
    bus = Bus(EventLog())
    with _shown(probes, bus.subscribe) as (beat, metrics):

        def gone(order: Order) -> None:
            if metrics is not None:
                from redrive.observe.shared_metrics import forget

                forget(metrics, slot=str(order.index))

        supervisor = Supervisor(
            lambda order: arguments(app, order, metrics=metrics),
            processes=processes,
            sink=bus,
            beat=beat,
            gone=gone,
            collect=not no_collect,
        )
        return supervisor.run()


@contextmanager
def _shown(
    probes: Probes, subscribe: Callable[[Subscriber], object]
) -> Iterator[tuple[Callable[[], None], Path | None]]:
    """What is called at each beat, and the folder in which all processes count. Raises `ConfigError`."""
    from redrive.observe.health import HealthPort, Liveness, LivenessFile

    folder: Path | None = None
    with ExitStack() as stack:
        lives: list[Liveness] = []
        if probes.liveness_file is not None:
            with blamed_on("--liveness-file"):
                lives.append(stack.enter_context(closing(LivenessFile(probes.liveness_file))))
        if probes.health_port is not None:
            with blamed_on("--health-port"):
                lives.append(stack.enter_context(closing(HealthPort(probes.health_port, host=probes.host))))
        if probes.metrics_port is not None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redrive-metrics-")))
            with blamed_on("--metrics-port"):
                stack.callback(_serve(folder, probes, subscribe))

        def beat() -> None:
            for life in lives:
                life.beat()

        yield beat, folder


def _serve(folder: Path, probes: Probes, subscribe: Callable[[Subscriber], object]) -> Callable[[], None]:
    from prometheus_client import CollectorRegistry

    from redrive.observe.metrics import Metrics, serve_metrics
    from redrive.observe.shared_metrics import count_in, sums_of

    count_in(folder, slot="supervisor")
    subscribe(Metrics(CollectorRegistry()))
    return serve_metrics(sums_of(folder), probes.metrics_port or 0, host=probes.host)
