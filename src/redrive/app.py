"""App: consumers, publish, run, worker(), sync(). The one object a user holds."""

import asyncio
import contextlib
import importlib
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, Self, TypeVar, Unpack

from redrive import wiring
from redrive.clock import SystemClock
from redrive.config import check_apart, load_settings
from redrive.core.duration import NOW, Duration, as_duration
from redrive.core.errors import ConfigError, MissingExtra
from redrive.core.keeping import PayloadMode
from redrive.core.message import Message, as_headers, without_reserved
from redrive.core.ports import Broker, Clock, Obituary
from redrive.core.ports.cipher import Cipher
from redrive.core.ports.tracing import Tracing
from redrive.observe.bus import Bus
from redrive.observe.event_log import EventLog
from redrive.triage.redriver import Redriver
from redrive.worker.alerting import AlertThreshold
from redrive.worker.consumer import Consumer, ConsumerOptions, Treatment
from redrive.worker.crew import GRACE, Crew, Duty
from redrive.worker.current import current_delivery
from redrive.worker.lifespan import Lifespan, enter
from redrive.worker.outcomes import Surroundings
from redrive.worker.payload import encode

Handler = TypeVar("Handler", bound=Callable[..., Any])
Result = TypeVar("Result")


class App:
    """A set of consumers on one broker, under one name.

    `name` is the group: all processes with this name share the work. `lifespan` is an async generator function
    that yields what handlers ask for by annotation. `version` is shown in letters and in the list of workers.
    `tracing` makes spans of attempts and publishing, with the OpenTelemetry that the program has set up.

    >>> app = App("memory://", name="shop")
    >>> @app.consumer("orders", retry=[1, 2, 4], timeout="30s")
    ... async def charge(order: dict) -> None: ...
    """

    _tracing: Tracing | None = None

    def __init__(
        self,
        broker: str | Broker,
        *,
        name: str,
        lifespan: Lifespan | None = None,
        version: str = "",
        grace: Duration = GRACE,
        tracing: bool = False,
    ) -> None:
        if not name:
            raise ConfigError("name: expected the app's name, got an empty one")
        self.name = name
        self.version = version
        self.consumers: list[Consumer] = []
        self.bus = Bus()
        self._lifespan = lifespan
        self._grace = as_duration(grace)
        self._clock: Clock = SystemClock()
        self._given = broker
        self._broker: Broker | None = None
        self._users = 0
        self._traced = tracing

    def consumer(self, queue: str, **options: Unpack[ConsumerOptions]) -> Callable[[Handler], Handler]:
        """Register a handler for single messages; the function is returned unchanged. Raises `ConfigError`."""
        return self._register(queue, None, options)

    def batch_consumer(
        self, queue: str, *, size: int = 100, **options: Unpack[ConsumerOptions]
    ) -> Callable[[Handler], Handler]:
        """Register a handler for up to `size` messages at once. Raises `ConfigError`."""
        if not isinstance(size, int) or size < 1:
            raise ConfigError(f"size: expected a whole number of at least 1, got {size!r}")
        return self._register(queue, size, options)

    def attach(self, broker: Broker, *, clock: Clock) -> "App":
        """The same app on another broker and clock: for tests."""
        twin = App(
            broker,
            name=self.name,
            lifespan=self._lifespan,
            version=self.version,
            grace=self._grace,
            tracing=self._traced,
        )
        twin.consumers = self.consumers
        twin._clock = clock
        return twin

    @property
    def broker(self) -> Broker:
        """The broker, once the app is open. Raises `ConfigError` before."""
        if self._broker is None:
            raise ConfigError("app: not open; use `async with app:` around publishing")
        return self._broker

    async def __aenter__(self) -> Self:
        self._users += 1
        if self._broker is None:
            given = self._given
            self._broker = wiring.connect(given, clock=self._clock, sink=self.bus) if isinstance(given, str) else given
            self._tracing = wiring.tracing(self._broker) if self._traced else None
        return self

    async def __aexit__(self, *_: object) -> None:
        self._users -= 1
        if not self._users and self._broker is not None:
            broker, self._broker = self._broker, None
            await broker.aclose()

    async def publish(
        self,
        queue: str,
        payload: object,
        *,
        key: str | bytes | None = None,
        headers: Mapping[str, str | bytes] | None = None,
        delay: Duration = NOW,
        expires: Duration | None = None,
    ) -> str:
        """Enqueue one message, durably; return its id.

        `payload` is sent as it is if it is bytes, as UTF-8 if text, else as JSON. `expires` is how long it may wait.
        """
        now = self._clock.now()
        own = without_reserved(as_headers(headers))
        with contextlib.nullcontext(own) if self._tracing is None else self._tracing.publish(queue, own) as sent:
            message = Message(
                id="",
                queue=queue,
                body=encode(payload),
                headers=sent,
                key=key.encode() if isinstance(key, str) else key,
                published_at=now,
                expires_at=None if expires is None else now + as_duration(expires),
            )
            (message_id,) = await self.broker.publish(queue, [message], delay=as_duration(delay))
        return message_id

    @contextlib.asynccontextmanager
    async def worker(self, *, takes_suspects: bool = True) -> AsyncIterator[Crew]:
        """Run all consumers in this event loop for as long as the block lasts; drains at its end."""
        async with self, enter(self._lifespan) as resources:
            crew = self._crew(resources, takes_suspects=takes_suspects)
            try:
                await crew.start()
                yield crew
            finally:
                await crew.stop()

    @contextlib.asynccontextmanager
    async def suspects(self, *, obituary: Obituary | None = None) -> AsyncIterator[Crew]:
        """A crew that fetches nothing, to run suspects alone: what a supervisor's child for them does."""
        async with self, enter(self._lifespan) as resources:
            crew = self._crew(resources, obituary=obituary)
            try:
                await crew.open_for_suspects()
                yield crew
            finally:
                await crew.stop()

    @contextlib.asynccontextmanager
    async def resources(self) -> AsyncIterator[tuple[object, ...]]:
        """What `lifespan` yields, for as long as the block lasts: to call a handler by hand."""
        async with enter(self._lifespan) as resources:
            yield resources

    @contextlib.asynccontextmanager
    async def way_back(self) -> AsyncIterator[bool]:
        """Collect dead letters into the settings' store and carry out redrives, for as long as the block lasts.

        Only where the broker is an SQLite file, which has no service beside it; gives whether it is done. Raises
        `ConfigError` if the store is the same file.
        """
        settings = load_settings()
        if not wiring.is_embedded(self._given):
            yield False
            return
        check_apart(str(self._given), settings.store)
        try:
            store = wiring.open_store(settings.store, clock=self._clock)
        except MissingExtra as error:
            logging.getLogger("redrive").warning("letters stay in the DLQ: %s", error)
            yield False
            return
        try:
            own = sorted({consumer.dlq for consumer in self.consumers if consumer.dlq is not None})
            async with self:
                collecting = wiring.collector(self.broker, store, dlqs=own, clock=self._clock, sink=self.bus)
                redriver = Redriver(
                    store,
                    {self.broker.name: self.broker},
                    clock=self._clock,
                    sink=self.bus,
                    cipher=wiring.cipher(settings),
                )
                async with wiring.way_back([collecting], redriver, clock=self._clock, sink=self.bus):
                    yield True
        finally:
            await store.aclose()

    def run(self, *, collect: bool = True) -> None:
        """Run all consumers in this process until SIGTERM or SIGINT; then drain and return.

        With `collect`, and a broker that is an SQLite file, the way back runs here too: dead letters are collected
        into the store, and redrives are carried out. Logs go to stderr as the settings say, unless the program has set
        up logging of its own.
        """
        if not logging.root.handlers:
            from redrive.observe.logs import set_up_logs  # noqa: PLC0415 - costs as much as all the rest, often for nothing

            settings = load_settings()
            set_up_logs(
                level=settings.log_level, form=settings.log_format, color=settings.color, delivery=current_delivery
            )
        self.bus.subscribe(EventLog())
        with asyncio.Runner(loop_factory=wiring.event_loop_factory()) as runner:
            runner.run(self._serve(collect=collect))

    async def _serve(self, *, collect: bool) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def asked(number: int) -> None:
            loop.remove_signal_handler(number)  # asked twice, the process ends at once
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, asked, number)
        async with self.worker(), self.way_back() if collect else contextlib.nullcontext():
            wiring.freeze_startup()
            await stop.wait()

    @contextlib.contextmanager
    def sync(self) -> Iterator["SyncApp"]:
        """Publish from code without an event loop: Django, scripts. Safe from many threads."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="redrive-sync", daemon=True)
        thread.start()
        facade = SyncApp(self, loop)
        try:
            facade.wait_for(self.__aenter__())
            try:
                yield facade
            finally:
                facade.wait_for(self.__aexit__())
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _register(self, queue: str, size: int | None, options: ConsumerOptions) -> Callable[[Handler], Handler]:
        treatment = Treatment.of({**wiring.consumer_defaults(self._given), **options})
        if treatment.dlq.enabled and treatment.dlq.dlq_of(queue, default="") == queue:
            raise ConfigError(f"dlq: expected another queue than {queue!r} itself: a letter there would be run again")
        if any(consumer.queue == queue for consumer in self.consumers):
            raise ConfigError(f"consumer: the queue {queue!r} has a handler already; one per queue and app")

        def register(handler: Handler) -> Handler:
            self.consumers.append(Consumer(queue, handler, treatment, size))
            return handler

        return register

    def _crew(
        self, resources: tuple[object, ...], *, takes_suspects: bool = True, obituary: Obituary | None = None
    ) -> Crew:
        return Crew(
            self.broker,
            self.consumers,
            duty=Duty(
                group=self.name,
                version=self.version,
                takes_suspects=takes_suspects,
                obituary=obituary,
                grace=self._grace,
            ),
            around=Surroundings(self._clock, AlertThreshold(self.bus), Random(), self._cipher(), self._tracing),  # noqa: S311 - jitter, not secrets
            resources=resources,
        )

    def _cipher(self) -> Cipher | None:
        """What seals the letters of consumers that keep them encrypted. Raises `ConfigError`, `MissingExtra`."""
        sealing = any(consumer.treatment.payload is PayloadMode.ENCRYPTED for consumer in self.consumers)
        return wiring.cipher(load_settings()) if sealing else None


class SyncApp:
    """An app's publishing side for code without an event loop."""

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._loop = loop

    def publish(self, queue: str, payload: object, **options: Any) -> str:
        """As `App.publish`: returns when the message is durable."""
        return self.wait_for(self._app.publish(queue, payload, **options))

    def wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the app's own loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def load_app(target: str) -> App:
    """The app that `module:attribute` names; the current folder is searched too. Raises `ConfigError`."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise ConfigError(f"app: expected module:attribute, such as first:app, got {target!r}")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigError(f"app: cannot import {module_name!r}: {type(error).__name__}: {error}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigError(f"app: {module_name!r} has no {attribute!r}, which {target!r} asks for")
        found = getattr(found, name)
    if not isinstance(found, App):
        raise ConfigError(f"app: expected {target!r} to be a redrive.App, got {type(found).__name__}")
    return found
