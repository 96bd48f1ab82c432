"""The connection: in which order things are said."""

from typing import Any

import pytest

from redrive.brokers.nats.address import Address
from redrive.brokers.nats.link import Link


async def test_the_server_is_asked_whether_it_has_words_behind_them(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client keeps back what is published for a moment, and its question it writes at once."""
    link, written = Link(Address.of(nats_url)), list[bytes]()
    transport: Any = (await link.client())._transport  # noqa: SLF001
    write, writelines = transport.write, transport.writelines

    def write_one(given: bytes) -> None:
        written.append(bytes(given))
        write(given)

    def write_all(given: list[bytes]) -> None:
        written.extend(map(bytes, given))
        writelines(given)

    monkeypatch.setattr(transport, "write", write_one)
    monkeypatch.setattr(transport, "writelines", write_all)
    await link.say([("orders.first", b"+WPI"), ("orders.second", b"-NAK")])
    await link.aclose()

    said = [line.split(b" ")[0].strip() for line in written]
    assert [word for word in said if word != b"SUB"] == [b"PUB", b"PUB", b"PING"]
