"""What a consumer's letters are of."""

import asyncio

import pytest

from redrive import App, ConfigError
from redrive.brokers.memory import MemoryBroker
from redrive.clock import SystemClock


async def test_letters_are_of_the_kind_that_their_consumer_says() -> None:
    broker = MemoryBroker(clock=SystemClock())
    app = App(broker, name="shop")

    @app.consumer("orders", retry=0)
    async def charge(_: bytes) -> None:
        raise ValueError

    @app.consumer("reports", retry=0, kind="report")
    async def write(_: bytes) -> None:
        raise ValueError

    async with app, app.worker():
        for queue, kind in (("orders", "message"), ("reports", "report")):
            await app.publish(queue, b"1")
            while not (entries := await broker.dead_letters(queue).peek()):  # noqa: ASYNC110 - written by the worker
                await asyncio.sleep(0)
            assert [entry.letter.kind for entry in entries] == [kind]


@pytest.mark.parametrize("kind", ["", "Two Words", "x" * 40, None, 3])
def test_a_kind_is_a_short_word(kind: object) -> None:
    with pytest.raises(ConfigError, match="kind: expected a short word"):
        App("memory://", name="shop").consumer("orders", kind=kind)  # type: ignore[arg-type]
