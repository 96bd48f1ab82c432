"""The wrapper: retries and dead letters for a handler that another framework runs."""

import functools
import inspect
import os
import platform
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

from redrive.core.backoff import Constant, Jitter
from redrive.core.context import ContextSpec
from redrive.core.errors import ConfigError, DeadLetterError
from redrive.core.event import BrokerFaulted, LetterRefused, LetterWritten
from redrive.core.failure import Failure
from redrive.core.letter import Source
from redrive.core.policy import RetryPolicy, RetrySpec
from redrive.core.ports import DeadLetterQueue
from redrive.core.redrive import RedriveOutcome
from redrive.worker.consumer import Consumer, Treatment
from redrive.worker.foreign import MessageRule, all_arguments, delivery_of
from redrive.worker.keeping import keeping_of
from redrive.worker.outcomes import Outcomes, Surroundings
from redrive.worker.passage import GivenUp, Passage
from redrive.worker.private_loop import PRIVATE_LOOP

P = ParamSpec("P")
R = TypeVar("R")

DELAY: Final = Constant(1)
PATIENCE: Final = timedelta(seconds=30)
"""The longest wait that a server's `Retry-After` gets by default: a wait here holds a message and its worker."""


class LetterOptions(TypedDict, total=False):
    """What the letters of wrapped handlers hold, as a consumer's do."""

    context: ContextSpec | None
    stack: bool
    payload: Literal["full", "digest", "encrypted"]


class DeadLetterWrapper:
    """Wraps handlers of any framework, async or sync: functions, methods, tasks. Use it as a decorator.

    The handler is retried in its own process. What it cannot do becomes a dead letter of `source`, and the call
    returns None, so that the framework acks. If the letter cannot be written the call raises `DeadLetterError` from
    the handler's exception, so that it does not. Cancelling a call ends it at once and writes nothing.

    `message` finds the message in the handler's arguments, before it runs; what it raises is raised. The success of
    a redriven message is reported. A report that fails is told to the event sink only: raising would run again what
    has succeeded.

    One wrapper may hold many handlers and be called from any task and thread. Async handlers use `dlq` on their own
    event loop, sync ones on Redrive's private loop. Raises `ConfigError` with every mistake at once.
    """

    def __init__(
        self,
        dlq: DeadLetterQueue,
        *,
        source: str,
        around: Surroundings,
        retry: RetrySpec = None,
        message: MessageRule | None = None,
        **letters: Unpack[LetterOptions],
    ) -> None:
        options = {"retry": retry, **letters, "breaker": None}
        treatment = _treatment(options, source=source, message=message)
        self._treatment = replace(treatment, retry=_in_process(treatment.retry, given=retry))
        self._dlq = dlq
        self._source = source
        self._around = around
        keeping_of(self._treatment, cipher=around.cipher)  # a key that is missing is told now
        self._message = message
        self._stopped = False
        self._waits: set[Future[None]] = set()

    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R | None]]: ...

    @overload
    def __call__(self, handler: Callable[P, R]) -> Callable[P, R | None]: ...

    def __call__(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """The handler with retries and dead letters; its name and its signature stay."""
        faces = (handler, type(handler).__call__)  # a function, or an object that is called like one
        if any(inspect.isgeneratorfunction(face) or inspect.isasyncgenfunction(face) for face in faces):
            raise ConfigError(f"handler: expected a function that returns when it is done, got {handler!r}")
        if any(map(inspect.iscoroutinefunction, faces)):
            return self._wrap_async(handler)
        return self._wrap_sync(handler)

    def stop(self) -> None:
        """Let the waits of sync handlers end at once: each raises its handler's exception and writes nothing."""
        self._stopped = True
        for wait in self._waits.copy():
            wait.cancel()

    async def aclose(self) -> None:
        """Close the dead letter queue, from whatever event loop. Idempotent; a letter after that is refused."""
        await self._dlq.aclose()

    def _wrap_async(self, handler: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R | None]]:
        enter = self._entrance(handler)

        @functools.wraps(handler)
        async def handle(*args: P.args, **kwargs: P.kwargs) -> R | None:
            passage = enter(args, kwargs)
            while (given_up := passage.given_up()) is None:
                try:
                    result = await handler(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - whatever a handler raises is its failure
                    delay = passage.failed(error)
                else:
                    if (outcome := passage.succeeded()) is not None:
                        await self._report(outcome)
                    return result
                if delay is not None:
                    await self._around.clock.sleep(delay)
            await self._send(given_up)
            return None

        return handle

    def _wrap_sync(self, handler: Callable[P, R]) -> Callable[P, R | None]:
        enter = self._entrance(handler)

        @functools.wraps(handler)
        def handle(*args: P.args, **kwargs: P.kwargs) -> R | None:
            passage = enter(args, kwargs)
            while (given_up := passage.given_up()) is None:
                try:
                    result = handler(*args, **kwargs)
                except Exception as error:
                    delay = passage.failed(error)
                    if delay is not None and not self._waited(delay):
                        raise
                else:
                    _refuse_awaitable(result, handler=handler)
                    if (outcome := passage.succeeded()) is not None:
                        PRIVATE_LOOP.run(self._report(outcome))
                    return result
            PRIVATE_LOOP.run(self._send(given_up))
            return None

        return handle

    def _entrance(self, handler: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], Passage]:
        consumer = Consumer(self._source, handler, self._treatment)
        name = _name(handler)
        rule = self._message or all_arguments(handler)

        def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Passage:
            delivery = delivery_of(rule(args, kwargs), queue=self._source, now=self._around.clock.now())
            # Named at each call: a handler may be wrapped in one process and run in its fork. Its name stands for
            # the incarnation, so that two handlers of one queue never write one letter for the same message.
            source = Source("", name, handler=name, node=platform.node(), pid=os.getpid(), own_ids=False)
            outcomes = Outcomes(consumer, source=source, around=self._around, breaker=None, opened=_nothing)
            return Passage(delivery, outcomes=outcomes)

        return enter

    async def _send(self, given_up: GivenUp) -> None:
        letter, error = given_up
        try:
            await self._dlq.send(letter)
        except Exception as refused:
            why = _text(refused)
            self._around.sink.emit(
                LetterRefused(
                    at=self._around.clock.now(),
                    queue=letter.queue,
                    message_id=letter.original_message_id,
                    payload_sha256=letter.payload_sha256,
                    why=why,
                    failure_reason=type(refused).__name__,
                    letter=letter,
                )
            )
            if isinstance(refused, DeadLetterError):
                raise refused from error
            raise DeadLetterError(f"the letter of a message from {letter.queue} was not written: {why}") from error
        self._around.sink.emit(LetterWritten(at=self._around.clock.now(), queue=letter.queue, letter=letter))

    async def _report(self, outcome: RedriveOutcome) -> None:
        try:
            await self._dlq.report(outcome)
        except Exception as error:  # noqa: BLE001 - the message has succeeded, whatever happens to the report
            self._around.sink.emit(
                BrokerFaulted(at=self._around.clock.now(), queue=outcome.queue, call="report", why=_text(error))
            )

    def _waited(self, delay: timedelta) -> bool:
        """Block for `delay`; False if `stop` ended it. A KeyboardInterrupt ends it too."""
        wait = PRIVATE_LOOP.submit(self._around.clock.sleep(delay))
        self._waits.add(wait)
        if self._stopped:
            wait.cancel()
        try:
            wait.result()
        except CancelledError:
            return False
        finally:
            wait.cancel()
            self._waits.discard(wait)
        return True


def _treatment(options: Mapping[str, Any], *, source: object, message: object) -> Treatment:
    """The options, read and checked together with the rest. Raises `ConfigError`."""
    mistakes = []
    if not isinstance(source, str) or not source:
        mistakes.append(f"source: expected the name of the queue that messages come from, got {source!r}")
    if message is not None and not callable(message):
        mistakes.append(f"message: expected a function of (args, kwargs), got {message!r}")
    try:
        treatment = Treatment.of(options)
    except ConfigError as error:
        mistakes.extend(error.mistakes)
    if mistakes:
        raise ConfigError(mistakes)
    return treatment


def _in_process(policy: RetryPolicy, *, given: RetrySpec) -> RetryPolicy:
    """The policy for waits that hold a message and its worker: short and plain where nothing else was said."""
    if isinstance(given, RetryPolicy):
        return given
    if given is None or isinstance(given, int):
        policy = replace(policy, backoff=DELAY, jitter=Jitter.NONE)
    return replace(policy, told_cap=PATIENCE)


def _name(handler: Callable[..., Any]) -> str:
    """A name that is the same in every process: no address of an object in it."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    named = handler if hasattr(handler, "__qualname__") else type(handler)
    return f"{named.__module__}.{named.__qualname__}"


def _refuse_awaitable(result: object, *, handler: Callable[..., Any]) -> None:
    """A sync function that hands out a coroutine has done nothing yet: none of its failures would be seen here."""
    if not inspect.isawaitable(result):
        return
    if inspect.iscoroutine(result):
        result.close()
    raise ConfigError(f"handler: expected an async function, because {_name(handler)} returns an awaitable")


def _text(error: Exception) -> str:
    failure = Failure.of(error)
    return f"{failure.error_type}: {failure.error_message}"


def _nothing() -> None:
    """There is no breaker that could open."""
