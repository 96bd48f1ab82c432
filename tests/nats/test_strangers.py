"""Messages that others wrote, by mistake or with intent, so that a consumer stumbles over them."""

import asyncio
from collections.abc import Sequence

import pytest
from nats.aio.client import Client

from redrive.brokers.nats import NatsBroker
from redrive.brokers.nats.errors import Refused
from redrive.brokers.nats.link import Letter, Published
from redrive.core.outcome import Settlement, SettleStatus
from tests.nats.scenes import ask, begin_stream, bench_on, take
from tests.servers.nats import NatsServer

HEADINGS = {
    "bytes in a value": b"a: \xff\xfe\r\n",
    "bytes in a name": b"\xff\xfe: a\r\n",
    "no colon": b"hello\r\n",
    "no name": b": a\r\n",
    "a folded line": b"a: b\r\n c\r\n",
    "a line end of another kind": b"a: b\nc: d\r\n",
    "a name twice": b"a: 1\r\na: 2\r\n",
    "what the server says when there is nothing": b"Status: 404\r\n",
    "what a stored message has": b"Nats-Sequence: x\r\nNats-Subject: y\r\nNats-Time-Stamp: z\r\n",
    "a number for a name": b'rd-headers: [[5,"YQ=="]]\r\n',
    "a list for a name": b'rd-headers: [[["x"],"YQ=="]]\r\n',
    "nested too deeply": b"rd-headers: " + b"[" * 50_000 + b"\r\n",
    "a number too long": b"rd-expires: " + b"9" * 5_000 + b"\r\n",
    "the place of another message": b"rd-body: 1\r\n",
    "no place": b"rd-fields: " + b"9" * 30 + b"\r\n",
    "as large as is stored": b"a: " + b"x" * 65_000 + b"\r\n",
    "many": b"".join(b"h%d: v\r\n" % number for number in range(6_000)),
}


async def write(server: NatsServer, subject: str, *, heading: bytes, body: bytes) -> None:
    """Publish what no client would."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    block = b"NATS/1.0\r\n" + heading + b"\r\n"
    writer.write(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n')
    writer.write(b"HPUB %s %d %d\r\n%s%s\r\n" % (subject.encode(), len(block), len(block) + len(body), block, body))
    writer.write(b"PING\r\n")
    while not (line := await reader.readline()).startswith(b"PONG"):
        assert line.startswith(b"INFO"), line
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("body", [b"body", b""], ids=["body", "no body"])
@pytest.mark.parametrize("heading", HEADINGS)
async def test_any_message_is_handed_out_given_up_and_sent_back_as_it_came(
    broker: NatsBroker, nats_server: NatsServer, client: Client, queue: str, heading: str, body: bytes
) -> None:
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    await bench.publish(b"before")
    await write(nats_server, queue, heading=HEADINGS[heading], body=body)
    before, strange = await take(worker, 2)
    await worker.settle([Settlement(before)])
    (given_up,) = await worker.settle([bench.give_up(strange, worker)])
    (entry,) = await bench.dlq.peek()
    await bench.dlq.redrive(entry.entry_id)
    (again,) = await take(worker, 1)
    (acked,) = await worker.settle([Settlement(again)])

    assert (given_up.status, acked.status) == (SettleStatus.DONE, SettleStatus.DONE)
    assert (strange.message.body, entry.letter.payload, again.message.body) == (body, body, body)
    assert strange.message.headers == entry.letter.headers == again.message.headers
    assert await _subjects(client, queue) == await _subjects(client, f"{queue}_dlq") == set()


async def test_a_letter_that_names_anothers_place_takes_nothing_with_it(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    bench = bench_on(broker, queue)
    await bench.given_up(b"1", b"2")
    await client.request(f"{queue}.dlq", b"3", headers={"rd-body": "1", "Nats-Msg-Id": "x"})
    *_, forged = await bench.dlq.peek()
    await bench.dlq.remove(forged.entry_id)
    await client.request(f"{queue}.dlq", b"4", headers={"rd-fields": "2"})
    collector = await bench.collector()
    collected = await take(collector, 3)
    await collector.settle([Settlement(each) for each in collected if each.message.body == b"4"])

    assert sorted(each.message.body for each in collected) == [b"1", b"2", b"4"]
    assert await bench.dlq.length() == 2


async def test_where_a_stream_of_others_takes_no_parts_only_what_is_too_large_is_refused(
    broker: NatsBroker, client: Client, queue: str
) -> None:
    await begin_stream(client, f"dead-{queue}", f"{queue}.dlq", allow_direct=True)
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    await client.request(queue, b"\xff" * client.max_payload, timeout=10)
    await bench.publish(b"small")
    large, small = [bench.give_up(each, worker) for each in await take(worker, 2)]
    refused, done = await worker.settle([large, small])

    assert (refused.status, done.status) == (SettleStatus.REFUSED, SettleStatus.DONE)
    assert refused.why.startswith("TooLarge: ")
    assert "add rd.part." in refused.why


async def test_a_large_letter_that_is_refused_again_and_again_leaves_one_copy_of_its_body(
    broker: NatsBroker, client: Client, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_on(broker, queue)
    worker = await bench.worker()
    await client.request(queue, b"\xff" * client.max_payload, timeout=10)
    item = bench.give_up((await take(worker, 1))[0], worker)
    link = broker._office.link  # noqa: SLF001
    publish = link.publish

    async def publish_parts(letters: Sequence[Letter]) -> Sequence[Published | Exception]:
        return [Refused("no")] if letters[0].subject == f"{queue}.dlq" else await publish(letters)

    monkeypatch.setattr(link, "publish", publish_parts)
    refused = [(await worker.settle([item]))[0].status for _ in range(3)]
    monkeypatch.setattr(link, "publish", publish)
    (done,) = await worker.settle([item])
    state = (await ask(client, f"STREAM.INFO.{queue}_dlq", subjects_filter=">"))["state"]

    assert (set(refused), done.status) == ({SettleStatus.REFUSED}, SettleStatus.DONE)
    assert sorted(state["subjects"].values()) == [1, 1]


async def _subjects(client: Client, stream: str) -> set[str]:
    """What of a message that was acked is left beside the queue."""
    told = await ask(client, f"STREAM.INFO.{stream}", subjects_filter="rd.part.>")
    return set(told["state"].get("subjects") or ())
