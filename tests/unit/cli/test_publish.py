import io
import json
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.core.delivery import Delivery
from redrive.core.message import Message
from redrive.core.ports import Broker, Options
from tests.unit.cli.conftest import Shop


def published(shop: Shop, queue: str = "orders") -> list[Message]:
    async def fetched(broker: Broker) -> Sequence[Delivery]:
        subscription = await broker.subscribe(queue, group="shop", options=Options(owner="reader"))
        try:
            return await subscription.fetch(1000, wait=timedelta(0))
        finally:
            await subscription.aclose()

    return [delivery.message for delivery in shop.ask(fetched)]


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    return raw


def test_the_text_of_the_argument_is_the_body(shop: Shop) -> None:
    said = shop.run("publish", "orders", '{"id": 1}')

    assert (said.status, said.out) == (0, "published 1 message to orders\n")
    assert [message.body for message in published(shop)] == [b'{"id": 1}']


@pytest.mark.parametrize("payload", ["-5", "--yes", "\udcff\udcfe"], ids=["hyphen", "hyphens", "not text"])
def test_an_argument_of_any_look_is_taken_as_it_is(shop: Shop, payload: str) -> None:
    assert shop.run("publish", "orders", "--", payload).status == 0

    assert [message.body for message in published(shop)] == [payload.encode("utf-8", "surrogateescape")]


def test_the_bytes_of_a_file_are_the_body_whatever_they_are(shop: Shop) -> None:
    body = bytes(range(256)) + b"\r\n\n"
    Path("order.bin").write_bytes(body)

    assert shop.run("publish", "orders", "@order.bin").status == 0

    assert [message.body for message in published(shop)] == [body]


def test_the_bytes_of_standard_input_are_the_body(shop: Shop, stdin: io.BytesIO) -> None:
    stdin.write(b"\x00\xff\n")
    stdin.seek(0)

    assert shop.run("publish", "orders", "-").status == 0

    assert [message.body for message in published(shop)] == [b"\x00\xff\n"]


def test_with_lines_each_line_is_a_message_and_an_empty_one_is_none(shop: Shop, stdin: io.BytesIO) -> None:
    stdin.write(b'{"id": 1}\n\n{"id": 2}\r\nlast')
    stdin.seek(0)

    said = shop.run("publish", "orders", "-", "--lines")

    assert said.out == "published 3 messages to orders\n"
    assert [message.body for message in published(shop)] == [b'{"id": 1}', b'{"id": 2}\r', b"last"]


def test_more_lines_than_one_batch_all_arrive(shop: Shop) -> None:
    Path("many").write_bytes(b"".join(b"%d\n" % number for number in range(1200)))

    said = shop.run("publish", "orders", "@many", "--lines", "--json")

    assert len({json.loads(line)["message_id"] for line in said.lines}) == 1200
    assert shop.run("queues", "--json").status == 0


def test_headers_key_delay_and_expiry_go_with_it(shop: Shop) -> None:
    flags = ("--header", "trace=a=b", "--header", "trace=ü", "--key", "k", "--expires", "1h")
    assert shop.run("publish", "orders", "x", *flags).status == 0
    assert shop.run("publish", "orders", "later", "--delay", "1h").status == 0

    (message,) = published(shop)
    assert message.headers == (("trace", b"a=b"), ("trace", "ü".encode()))
    assert message.key == b"k"
    assert message.published_at is not None
    assert message.expires_at is not None
    assert abs(message.expires_at - message.published_at - timedelta(hours=1)) < timedelta(minutes=1)


def test_every_mistake_is_told_at_once_and_nothing_is_published(shop: Shop) -> None:
    flags = ("--header", "trace", "--header", "rd-letter=1", "--delay", "soon", "--expires", "-1")
    said = shop.run("publish", "orders", "x", *flags)

    assert said.status == 2
    assert [line.split(":")[1].strip() for line in said.err.splitlines()] == [
        "--header",
        "--header",
        "--delay",
        "--expires",
    ]
    assert not shop.file.exists()


def test_a_file_that_cannot_be_read_is_one_clear_line(shop: Shop) -> None:
    said = shop.run("publish", "orders", "@absent.json")

    assert said.status == 2
    assert said.err == "redrive: @absent.json: cannot be read: No such file or directory\n"
    assert not shop.file.exists()


def test_json_tells_the_id_of_each_message(shop: Shop) -> None:
    said = shop.run("publish", "orders", "x", "--json")

    (message,) = published(shop)
    assert [json.loads(line) for line in said.lines] == [{"queue": "orders", "message_id": message.id}]


def test_the_broker_can_be_named_by_the_environment(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRIVE_BROKER", "sqlite:///other.db")

    assert shop.run("publish", "orders", "x").status == 0

    assert Path("other.db").exists()
    assert not shop.file.exists()


@pytest.mark.parametrize("flag", ["--delay", "--expires"])
def test_a_length_of_more_than_ten_years_is_refused(shop: Shop, flag: str) -> None:
    said = shop.run("publish", "orders", "x", flag, "1000000000000")

    assert said.status == 2
    assert said.err == f"redrive: {flag}: expected at most ten years, got '1000000000000'\n"
