"""An app on NATS, from the message to its letter, and what is said when the DLQ does not take it."""

import asyncio
import hashlib
from typing import Literal

import pytest
from nats.aio.client import Client

from redrive import App, GiveUp
from redrive.core.event import BatchSettled, Event, LetterRefused, LetterWritten
from redrive.core.place import DeadLetterPlace
from tests.nats.scenes import WAIT


class Heard:
    """Events of an app, and a way to wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._came = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events += (event, *(event.written() if isinstance(event, BatchSettled) else ()))
        self._came.set()

    async def until(self, kind: type[Event], count: int = 1) -> list[Event]:
        async with asyncio.timeout(WAIT.total_seconds()):
            while len(found := [event for event in self.events if isinstance(event, kind)]) < count:
                self._came.clear()
                await self._came.wait()
        return found


async def test_a_message_is_retried_given_up_and_found_in_the_dlq(nats_url: str, client: Client, queue: str) -> None:
    app, heard, runs = App(nats_url, name="shop"), Heard(), []
    app.bus.subscribe(heard)

    @app.consumer(queue, retry=[0, 0])
    async def charge(body: bytes) -> None:
        runs.append(body)
        raise ValueError("no")

    async with app, app.worker():
        await client.publish(queue, b"1", headers={"colour": "red"})
        await heard.until(LetterWritten)
        (entry,) = await app.broker.dead_letters(queue).peek()

    assert runs == [b"1"] * 3
    assert (entry.letter.payload, entry.letter.headers) == (b"1", (("colour", b"red"),))
    assert len(entry.letter.attempts) == 3


@pytest.mark.parametrize("on_failure", ["hold", "drop"])
async def test_a_letter_that_is_refused_is_told_with_subject_code_reason_and_hash(
    nats_url: str, client: Client, queue: str, on_failure: Literal["hold", "drop"]
) -> None:
    app, heard = App(f"{nats_url}?dlq.max_msgs=1", name="shop"), Heard()
    app.bus.subscribe(heard)

    @app.consumer(queue, dlq=DeadLetterPlace(on_failure=on_failure))
    async def charge(body: bytes) -> None:
        if body != b"good":
            raise GiveUp("no customer", code="no_customer")

    async with app, app.worker():
        await client.publish(queue, b"first")
        await heard.until(LetterWritten)
        await client.publish(queue, b"second")
        (refused, *_) = await heard.until(LetterRefused)
        await client.publish(queue, b"good")
        depth = await app.broker.depth(queue, group="shop")

    assert isinstance(refused, LetterRefused)
    assert refused.payload_sha256 == hashlib.sha256(b"second").hexdigest()
    assert refused.failure_reason == "DeadLetterQueueFull"
    assert (f"{queue}.dlq" in refused.why, "maximum messages exceeded" in refused.why) == (True, True)
    assert refused.letter is not None
    assert (refused.letter.error_code, refused.dropped, depth.dead) == ("no_customer", on_failure == "drop", 1)
