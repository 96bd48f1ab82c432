"""What a producer says in a message is kept in its queue and in full letters, and not beside them."""

import asyncio
import logging
from typing import Literal

import pytest

import redrive
from redrive.brokers.rabbitmq.names import BOOK, Place
from redrive.brokers.rabbitmq.stream import Stream
from redrive.core.event import BatchSettled, Event, LetterWritten
from redrive.core.letter import DeadLetter, payload_hash
from tests.rabbitmq.conftest import PATIENCE, Scene

CANARY = "canary7Xq2"
BODY = b'{"card": "body-canary7Xq2"}'


async def given_up(scene: Scene, payload: Literal["full", "digest"]) -> DeadLetter:
    """The letter of a message that has a canary wherever its producer can put one."""
    app, written = redrive.App(scene.url, name="shop"), asyncio.Event()

    def heard(event: Event) -> None:
        more = event.written() if isinstance(event, BatchSettled) else ()
        if any(isinstance(each, LetterWritten) for each in (event, *more)):
            written.set()

    @app.consumer(scene.queue, retry=[0], payload=payload)
    async def charge(message: redrive.Message) -> None:
        said = f"{message.body!r} {message.headers!r}" if payload == "digest" else "no"
        raise ValueError(said)

    app.bus.subscribe(heard)
    async with app, app.worker():
        while (scene.queue, "shop") not in await scene.broker.queues():  # noqa: ASYNC110 - the worker begins the queue
            await asyncio.sleep(0.01)
        await scene.foreign(
            BODY,
            message_id=f"id-{CANARY}",
            correlation_id=f"correlation-{CANARY}",
            app_id=f"app-{CANARY}",
            headers={"X-Any": f"header-{CANARY}"},
        )
        async with asyncio.timeout(PATIENCE.total_seconds()):
            await written.wait()
        (entry,) = await app.broker.dead_letters(scene.queue).peek()
    return entry.letter


async def beside(scene: Scene) -> str:
    """All that is written about messages, and is none."""
    place, link = Place(scene.queue, "shop"), scene.broker._office.link  # noqa: SLF001
    notes = scene.broker._office.notes(place)._stream  # noqa: SLF001 - it knows its limits
    return repr([await stream.read(since=None) for stream in (Stream(link, BOOK), notes)])


async def test_a_digest_has_nothing_that_its_producer_has_said(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    letter = await given_up(scene, "digest")
    entry = await scene.channel.basic_get(f"{scene.queue}.dlq")

    assert (letter.payload, letter.headers, letter.payload_sha256) == (None, (), payload_hash(BODY))
    assert CANARY not in repr(letter)
    assert CANARY not in repr((entry.body, dict(entry.header.properties)))
    assert CANARY not in await beside(scene)
    assert CANARY not in caplog.text


async def test_a_full_letter_keeps_all_of_it_and_what_is_written_beside_it_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    letter = await given_up(scene, "full")

    assert letter.payload == BODY
    assert dict(letter.headers) == {
        "X-Any": f"header-{CANARY}".encode(),
        "correlation-id": f"correlation-{CANARY}".encode(),
        "app-id": f"app-{CANARY}".encode(),
        "message-id": f"id-{CANARY}".encode(),
    }
    assert CANARY not in letter.original_message_id
    assert CANARY not in await beside(scene)
    assert CANARY not in caplog.text
