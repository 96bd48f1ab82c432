import asyncio
import functools
import inspect
import signal
import threading
from collections.abc import Iterator

import pytest

from redrive.core.errors import ConfigError
from redrive.core.letter import DeadLetter
from redrive.testing.clock import ManualClock
from redrive.testing.queues import RecordingDeadLetterQueue
from tests.unit.worker.wrapper_bench import Bench, Sleepless, out_of_stock, out_of_stock_sync

# ------------------------------------------------------------------------------------------ ending a call


async def test_cancelling_a_wait_ends_it_at_once_and_writes_nothing() -> None:
    clock = ManualClock()
    bench = Bench(clock=clock)
    failed = asyncio.Event()

    @bench.wrap
    async def charge(_: object) -> None:
        failed.set()
        raise RuntimeError("no stock")

    call = asyncio.ensure_future(charge(b"7"))
    await failed.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert clock.next_wake_at() is None
    assert bench.letters.count == 0


async def test_cancelling_a_running_handler_writes_nothing() -> None:
    bench = Bench()
    started = asyncio.Event()

    @bench.wrap
    async def charge(_: object) -> None:
        started.set()
        await asyncio.Event().wait()

    call = asyncio.ensure_future(charge(b"7"))
    await started.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert bench.letters.count == 0


async def test_stop_ends_the_wait_of_a_sync_handler_with_its_own_exception() -> None:
    clock = Sleepless()
    bench = Bench(clock=clock)
    charge = bench.wrap(out_of_stock_sync)

    call = asyncio.ensure_future(asyncio.to_thread(charge, b"7"))
    await asyncio.to_thread(clock.asleep.wait)
    bench.wrap.stop()

    with pytest.raises(RuntimeError, match="no stock"):
        await call
    assert bench.letters.count == 0


def test_a_stopped_wrapper_does_not_begin_to_wait() -> None:
    bench = Bench(clock=Sleepless())
    bench.wrap.stop()

    with pytest.raises(RuntimeError, match="no stock"):
        bench.wrap(out_of_stock_sync)(b"7")


def test_a_keyboard_interrupt_breaks_the_wait_of_a_sync_handler() -> None:
    clock = Sleepless()
    bench = Bench(clock=clock)
    main = threading.get_ident()

    def interrupt() -> None:
        clock.asleep.wait()
        signal.pthread_kill(main, signal.SIGINT)

    presser = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it runs behind ignore it
    try:
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            bench.wrap(out_of_stock_sync)(b"7")
    finally:
        signal.signal(signal.SIGINT, before)

    presser.join()
    assert bench.letters.count == 0


# ------------------------------------------------------------------------------------------ every kind of handler


def test_a_sync_handler_works_where_no_event_loop_runs() -> None:
    bench = Bench(retry=[1, 2])

    bench.wrap(out_of_stock_sync)(b"7")

    assert bench.clock.slept == [1, 2]
    assert bench.letters.last.retry_count == 3


async def test_a_sync_handler_works_inside_a_running_loop_and_in_many_threads() -> None:
    bench = Bench(retry=[1])
    charge = bench.wrap(out_of_stock_sync)

    charge(b"7")
    await asyncio.gather(*(asyncio.to_thread(charge, b"8") for _ in range(5)))

    assert bench.letters.count == 6


def test_all_sync_handlers_meet_their_queue_on_the_same_loop() -> None:
    loops = set()

    class Noting(RecordingDeadLetterQueue):
        async def send(self, letter: DeadLetter) -> None:
            loops.add(asyncio.get_running_loop())
            await super().send(letter)

    for _ in range(2):
        Bench(Noting(), retry=0).wrap(out_of_stock_sync)(b"7")

    assert len(loops) == 1


class Till:
    async def charge(self, _: object) -> None:
        raise RuntimeError("no stock")

    async def __call__(self, _: object) -> None:
        raise RuntimeError("no stock")


async def test_methods_are_wrapped_in_their_class_or_bound() -> None:
    bench = Bench(retry=0)

    class WrappedTill:
        @bench.wrap
        async def charge(self, _: object) -> None:
            raise RuntimeError("no stock")

    await WrappedTill().charge(b"7")
    await bench.wrap(Till().charge)(b"8")

    assert [letter.payload for letter in bench.letters.events] == [b"7", b"8"]


async def test_callable_objects_and_partial_functions_have_a_name_without_an_address() -> None:
    bench = Bench(retry=0)

    await bench.wrap(Till())(b"7")
    await bench.wrap(functools.partial(out_of_stock))(b"7")

    names = [letter.handler.rpartition(".")[2] for letter in bench.letters.events]
    assert names == ["Till", "out_of_stock"]


def test_name_and_signature_stay() -> None:
    async def charge(order: bytes, *, note: str = "") -> int:
        """Charge it."""
        return len(order) + len(note)

    wrapped = Bench().wrap(charge)

    assert inspect.signature(wrapped) == inspect.signature(charge)
    assert inspect.iscoroutinefunction(wrapped)
    assert (wrapped.__name__, wrapped.__doc__) == ("charge", "Charge it.")


def test_a_generator_is_refused_when_it_is_wrapped() -> None:
    def stream(order: bytes) -> Iterator[bytes]:
        yield order

    with pytest.raises(ConfigError, match="returns when it is done"):
        Bench().wrap(stream)


def test_a_sync_function_that_returns_a_coroutine_is_refused_rather_than_left_unprotected() -> None:
    def charge(order: bytes) -> object:
        return out_of_stock(order)

    with pytest.raises(ConfigError, match="expected an async function"):
        Bench().wrap(charge)(b"7")


def test_every_mistake_in_the_settings_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        Bench(source="", message="body", retry=-1, context="id", stack="yes")

    wrong = [mistake.partition(":")[0] for mistake in raised.value.mistakes]
    assert wrong == ["source", "message", "max_retries", "context", "stack"]
