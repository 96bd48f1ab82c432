"""Bytes in, bytes back: payload, key and headers survive every step, whatever they hold."""

import os
from collections.abc import AsyncIterator

import pytest

from redrive.core.message import Headers, Message
from redrive.core.outcome import Settlement
from redrive.testing.conformance.bench import Bench
from redrive.testing.conformance.suite import Suite

BODIES = [
    pytest.param(b"", id="empty"),
    pytest.param(b"\xff\xfe\x80", id="not UTF-8"),
    pytest.param(b"a\x00b\x00", id="NUL"),
    pytest.param(b'{"id": 1}\r\n', id="JSON"),
    pytest.param("\ufeffgr\u00fc\u00df".encode(), id="BOM"),
    pytest.param(bytes(range(256)), id="every byte"),
    pytest.param(os.urandom(1024) * 1024, id="1 MiB"),
]

HEADERS: Headers = (
    ("colour", b"red"),
    ("colour", b"blue"),
    ("Colour", b"\xff\x00\r\n"),
    ("empty", b""),
    ("gr\u00fc\u00df", "\u2713".encode()),
    ("colour", b"red"),
)


class Contents(Suite):
    """Promise 6, along the whole path of a message."""

    @pytest.mark.parametrize("body", BODIES)
    async def test_bytes_survive_retry_death_giving_up_and_redrive(self, bench: Bench, body: bytes) -> None:
        seen = [content async for content in self._journey(bench, Message("", bench.queue, body, HEADERS, b"\x00\xff"))]

        assert len(seen) == 6
        assert {content for content in seen if content != (body, HEADERS, b"\x00\xff")} == set()

    @pytest.mark.parametrize("key", [None, b"", b"\x00", "schl\u00fcssel".encode()])
    async def test_a_key_or_its_absence_survives(self, bench: Bench, key: bytes | None) -> None:
        seen = [content async for content in self._journey(bench, Message("", bench.queue, b"1", (), key))]

        assert {content[2] for content in seen} == {key}

    async def test_a_thousand_headers_survive(self, bench: Bench) -> None:
        headers = tuple((f"name-{number}", b"%d" % number) for number in range(1000))
        seen = [content async for content in self._journey(bench, Message("", bench.queue, b"1", headers))]

        assert {content[1] == headers for content in seen} == {True}

    async def _journey(
        self, bench: Bench, message: Message
    ) -> AsyncIterator[tuple[bytes | None, Headers, bytes | None]]:
        """Every form in which the message can be seen, from its publication to its redrive."""
        worker = await bench.worker()
        await bench.broker.publish(bench.queue, [message])
        first = await bench.take_one(worker)
        yield first.message.body, first.message.headers, first.message.key
        await worker.settle([bench.retry(first)])
        again = await bench.take_one(worker)
        yield again.message.body, again.message.headers, again.message.key
        await bench.let_die(seen_by=worker)
        suspect = await bench.suspect(worker)
        yield suspect.message.body, suspect.message.headers, suspect.message.key
        await worker.settle([bench.give_up(suspect, worker)])
        (entry,) = await bench.dlq.peek()
        yield entry.letter.payload, entry.letter.headers, entry.letter.key
        await bench.dlq.redrive(entry.entry_id)
        redriven = await bench.take_one(worker)
        yield redriven.message.body, redriven.message.headers, redriven.message.key
        await bench.broker.send_back([bench.send_back(bench.letter(redriven))])
        await worker.settle([Settlement(redriven)])
        sent_back = await bench.take_one(worker)
        yield sent_back.message.body, sent_back.message.headers, sent_back.message.key
