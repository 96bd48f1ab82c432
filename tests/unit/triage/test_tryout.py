from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from redrive.core.delivery import Delivery
from redrive.core.errors import DeadLetterError
from redrive.core.failure import Failure
from redrive.core.message import Message
from redrive.core.outcome import GiveUp
from redrive.core.policy import RetryPolicy
from redrive.triage import editor, tryout
from redrive.triage.tryout import Tried
from redrive.worker.consumer import Consumer, Treatment
from redrive.worker.handler_call import handler_of
from redrive.worker.outcomes import NotAccepted
from redrive.worker.payload import InvalidPayload
from tests.unit.triage.bench import Bench


async def tried(bench: Bench, handler: Callable[..., Any], *resources: object, **options: Any) -> Tried:
    batch = options.pop("batch_size", None)
    consumer = Consumer("orders", handler, Treatment.of(options), batch)
    return await tryout.try_letter(
        await bench.get(), handler_of(consumer, resources), policy=RetryPolicy.of(0), clock=bench.clock
    )


async def a_bench(**changes: Any) -> Bench:
    bench = Bench()
    await bench.collect(1, **changes)
    return bench


async def test_the_current_handler_runs_on_the_letters_bytes_and_nothing_changes() -> None:
    bench = await a_bench(headers=(("trace", b"t1"),), key=b"k")
    seen: list[object] = []

    async def charge(order: dict[str, int], message: Message, delivery: Delivery) -> str:
        seen.extend((order, message.headers, message.key, message.idempotency_key, delivery.generation))
        return "charged"

    assert await tried(bench, charge) == Tried(succeeded=True, result="charged")
    assert seen == [{"order": 0}, (("trace", b"t1"),), b"k", "orders:message-0", 1]
    assert await bench.states() == {"open": 1}


async def test_a_plain_function_runs_here_and_is_given_its_resources() -> None:
    bench = await a_bench()

    def charge(order: dict[str, int], database: Bench) -> bool:
        return database is bench and order == {"order": 0}

    assert (await tried(bench, charge, bench)).result is True


async def test_the_same_failure_is_recognised_and_another_is_told_apart() -> None:
    def charge(order: dict[str, int]) -> None:
        raise ValueError("no customer")

    async def otherwise(order: dict[str, int]) -> None:
        raise KeyError("customer")

    try:
        charge({})
    except ValueError as error:
        bench = await a_bench(fingerprint=Failure.of(error).fingerprint)

    same = await tried(bench, charge)
    other = await tried(bench, otherwise)

    assert (same.succeeded, same.same, other.same) == (False, True, False)
    assert isinstance(other.error, KeyError)
    assert other.error.__traceback__ is not None
    assert other.failure is not None
    assert other.failure.error_type == "KeyError"
    assert same.would == "attempt 1 of 1 failed with ValueError: attempts exhausted"


async def test_a_body_that_the_handler_does_not_accept_is_a_failure_too() -> None:
    async def charge(order: list[int]) -> None: ...

    assert isinstance((await tried(await a_bench(), charge)).error, InvalidPayload)


async def test_a_result_that_does_not_count_is_a_failure_too() -> None:
    async def charge(order: dict[str, int]) -> bool:
        return False

    assert isinstance((await tried(await a_bench(), charge, accept=bool)).error, NotAccepted)


async def test_a_batch_handler_is_given_a_batch_of_one() -> None:
    async def charge(orders: list[dict[str, int]], messages: list[Message]) -> list[GiveUp]:
        assert len(orders) == len(messages) == 1
        return [GiveUp("no customer")]

    async def fine(orders: list[dict[str, int]]) -> None: ...

    assert isinstance((await tried(await a_bench(), charge, batch_size=10)).error, GiveUp)
    assert (await tried(await a_bench(), fine, batch_size=10)).succeeded


async def test_what_would_be_sent_is_what_is_tried() -> None:
    bench = await a_bench()
    await editor.edit(bench.desk, "letter-0", body=b'{"order": 7}')

    async def charge(order: dict[str, int]) -> int:
        return order["order"]

    assert (await tried(bench, charge)).result == 7


async def test_a_letter_without_a_copy_cannot_be_tried() -> None:
    bench = Bench()
    (letter,) = await bench.collect(1)
    await bench.store.collect([replace(letter, letter_id="digest", payload=None)])
    with pytest.raises(DeadLetterError):
        tryout.delivery_of(await bench.get("digest"), clock=bench.clock)
