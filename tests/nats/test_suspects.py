"""Suspects: who finds them, in which order they run, and what is no crash."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from nats.aio.client import Client

from redrive.brokers.nats import NatsBroker
from redrive.brokers.nats.book import Row
from redrive.core.duration import NOW
from redrive.testing.conformance.bench import Bench, BrokerUnderTest
from tests.nats.scenes import WAIT, join
from tests.servers.nats_time import NatsTime

A_WHILE = timedelta(seconds=40)  # less than a lease


@pytest.fixture
async def bench(nats_url: str, nats_in_time: NatsTime, queue: str) -> AsyncIterator[Bench]:
    """The verbs of the conformance suite, where a lease of a minute is over when we say so."""

    async def reopen() -> Any:
        raise NotImplementedError

    broker = NatsBroker(nats_url, clock=nats_in_time.clock)
    yield Bench(
        BrokerUnderTest(
            broker=broker, clock=nats_in_time.clock, elapse=nats_in_time.elapse, reopen=reopen, patience=WAIT
        ),
        queue=queue,
    )
    await broker.aclose()


async def test_one_whose_worker_died_while_it_ran_alone_waits_and_is_in_nobodys_hands(bench: Bench) -> None:
    worker, _ = await bench.one_delivery()
    other = await bench.worker()
    await bench.let_die(seen_by=other)
    await bench.suspect(worker)
    await bench.let_die(seen_by=other)

    assert await other.heartbeat() == 1
    assert await bench.counts() == {"waiting": 1}


async def test_who_runs_a_suspect_alone_finds_what_others_leave_behind(bench: Bench) -> None:
    first, _ = await bench.one_delivery(b"1")
    second, other = await bench.worker(), await bench.worker()
    await bench.let_die(seen_by=other)
    alone = await bench.suspect(other)
    await bench.publish(b"2")
    await bench.take_one(second)
    for _ in range(2):
        await bench.elapse(A_WHILE)
        assert not await other.extend([alone])

    assert await other.heartbeat() == 1
    assert (await bench.suspect(first)).message.body == b"2"


async def test_those_run_first_whose_process_has_died_least_often(bench: Bench) -> None:
    """Deaths that follow each other closely should not all be one message's."""
    worker, other = await bench.worker(), await bench.worker()
    await bench.publish(b"1", b"2")
    await bench.take(worker, 2)
    await bench.let_die(seen_by=other)
    order = []
    for _ in range(3):
        found = await bench.suspect(other)
        order.append((found.message.body, found.crashes))
        await bench.let_die(seen_by=other)

    assert order == [(b"1", 0), (b"2", 0), (b"1", 1)]


async def test_one_that_took_longer_than_its_lease_to_be_taken_has_not_crashed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stood still, or the network: nothing has run."""
    worker, _ = await bench.one_delivery()
    other = await bench.worker()
    await bench.let_die(seen_by=other)
    link = bench.broker._office.link  # type: ignore[attr-defined]  # noqa: SLF001
    say = link.say

    async def say_slowly(words: Sequence[tuple[str, bytes]]) -> None:
        await say(words)
        await bench.elapse(bench.lease)

    monkeypatch.setattr(link, "say", say_slowly)
    too_late = await other.fetch_suspect()
    monkeypatch.setattr(link, "say", say)

    assert too_late is None
    assert (await bench.suspect(worker)).crashes == 0


async def test_a_retry_that_was_decided_just_before_the_message_was_put_aside_is_kept(
    bench: Bench, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, delivery = await bench.one_delivery()
    other = await bench.worker()
    book = bench.broker._office.book  # type: ignore[attr-defined]  # noqa: SLF001
    read, decided = book.read, asyncio.Event()

    async def decide_after(keys: Sequence[str]) -> dict[str, Row]:
        found: dict[str, Row] = await read(keys)
        monkeypatch.setattr(book, "read", read)
        decided.set()
        await worker.settle([bench.retry(delivery, NOW)])
        return found

    monkeypatch.setattr(book, "read", decide_after)
    await client.request(delivery.token.reply, b"-NAK")
    while not decided.is_set():  # the server takes its time to deliver it again
        await other.fetch(1, wait=NOW)
    await bench.elapse(timedelta(seconds=2))

    assert (await bench.take_one(other)).failures == 1


async def test_a_retry_that_comes_back_at_its_next_turn_is_not_read_again_and_at_any_other_is(
    bench: Bench, nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only if nobody else has had it in between is what this process wrote certain to be the last word."""
    worker, first = await bench.one_delivery()
    book = bench.broker._office.book  # type: ignore[attr-defined]  # noqa: SLF001
    read, asked = book.read, list[str]()

    async def noting(keys: Sequence[str]) -> dict[str, Row]:
        asked.extend(keys)
        found: dict[str, Row] = await read(keys)
        return found

    monkeypatch.setattr(book, "read", noting)
    await worker.settle([bench.retry(first, NOW)])
    second = await bench.take_one(worker)
    read_at_once = list(asked)
    await worker.settle([bench.retry(second, NOW)])
    elsewhere = NatsBroker(nats_url, clock=bench.clock)
    other = await join(elsewhere, bench.queue, "elsewhere", group=worker._group.name)  # type: ignore[attr-defined]  # noqa: SLF001
    third = await bench.take_one(other)
    await other.settle([bench.retry(third, NOW)])
    await elsewhere.aclose()
    fourth = await bench.take_one(worker)

    assert not read_at_once
    assert asked
    assert [each.failures for each in (second, third, fourth)] == [1, 2, 3]


async def test_a_message_pulled_for_somebody_who_left_is_leased_from_then_on(bench: Bench) -> None:
    worker = await bench.worker()
    await bench.publish(b"1")
    await worker._pulls[0]._request(1, WAIT)  # type: ignore[attr-defined]  # noqa: SLF001
    pulled_at = bench.clock.now()
    await bench.elapse(A_WHILE)
    delivery = await bench.take_one(worker)

    assert delivery.token.until <= pulled_at + bench.lease
