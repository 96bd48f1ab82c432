"""A DLQ in a file is an ordinary queue: several groups may read it, and strangers may write to it."""

from dataclasses import replace

import pytest

from redrive.core.errors import ConfigError, DeadLetterError, LetterNotFound
from redrive.core.outcome import Settlement
from redrive.core.reason import Reason
from redrive.testing.conformance.bench import Bench


async def test_an_entry_that_two_groups_read_is_one_entry(bench: Bench) -> None:
    collectors = [await bench.worker(queue=bench.dlq.name, group=group) for group in ("collector", "audit")]
    await bench.given_up(b"1", b"2")
    first = await bench.take_one(collectors[0])
    await collectors[0].settle([Settlement(first)])
    entries = await bench.dlq.peek()

    assert [entry.letter.payload for entry in entries] == [b"1", b"2"]
    assert await bench.dlq.length() == 2
    assert (await bench.depth()).dead == 2


async def test_a_redriven_entry_is_taken_from_every_group_that_reads_the_dlq(bench: Bench) -> None:
    collectors = [await bench.worker(queue=bench.dlq.name, group=group) for group in ("collector", "audit", "slow")]
    await bench.given_up(b"1")
    in_hand = await bench.take_one(collectors[0])
    tried = await bench.take_one(collectors[1])
    await collectors[1].settle([bench.retry(tried)])
    again = await bench.take_one(collectors[1])
    (entry,) = await bench.dlq.peek()
    await bench.dlq.redrive(entry.entry_id)

    assert [answer.status for answer in await collectors[0].settle([Settlement(in_hand)])] == ["lost"]
    assert [answer.status for answer in await collectors[1].settle([Settlement(again)])] == ["lost"]
    assert await bench.nothing_for(collectors[2])
    assert await bench.dlq.length() == 0


async def test_an_entry_on_which_a_collector_died_can_be_redriven_and_leaves_nothing(bench: Bench) -> None:
    collector = await bench.worker(queue=bench.dlq.name, group="collector")
    await bench.given_up(b"1")
    await bench.take_one(collector)
    for _ in range(2):
        await bench.let_die(seen_by=collector)
        await bench.suspect(collector)
    await bench.let_die(seen_by=collector)
    (entry,) = await bench.dlq.peek()
    await bench.dlq.redrive(entry.entry_id)

    assert await collector.fetch_suspect() is None
    assert await bench.counts() == {"waiting": 1}


async def test_a_message_that_is_no_letter_is_shown_and_goes_back_to_the_queue(bench: Bench) -> None:
    await bench.worker()
    await bench.publish(b"\xff no letter", queue=bench.dlq.name)
    (entry,) = await bench.dlq.peek()
    await bench.dlq.redrive(entry.entry_id)

    assert entry.letter.reason is Reason.UNKNOWN
    assert await bench.counts() == {"waiting": 1}


async def test_a_letter_without_payload_cannot_be_redriven_and_stays(bench: Bench) -> None:
    _, delivery = await bench.one_delivery()
    await bench.dlq.send(replace(bench.letter(delivery), payload=None))
    (entry,) = await bench.dlq.peek()
    with pytest.raises(DeadLetterError, match="payload"):
        await bench.dlq.redrive(entry.entry_id)

    assert await bench.dlq.length() == 1


async def test_a_letter_that_names_a_hostile_queue_stays(bench: Bench) -> None:
    _, delivery = await bench.one_delivery()
    await bench.dlq.send(replace(bench.letter(delivery), queue="../../etc"))
    (entry,) = await bench.dlq.peek()
    with pytest.raises(ConfigError):
        await bench.dlq.redrive(entry.entry_id)

    assert await bench.dlq.length() == 1


async def test_a_letter_that_cannot_be_written_is_a_dead_letter_error(bench: Bench) -> None:
    _, delivery = await bench.one_delivery()
    with pytest.raises(DeadLetterError, match="was not written"):
        await bench.dlq.send(replace(bench.letter(delivery), letter_id="\ud800"))

    assert await bench.dlq.length() == 0


@pytest.mark.parametrize("start", ["", "nonsense", "00000000-1", "-1", "00000000-٣"])
async def test_a_name_that_is_no_entry_of_this_dlq_shows_nothing(bench: Bench, start: str) -> None:
    await bench.given_up(b"1")

    assert list(await bench.dlq.peek(start=start)) == []


async def test_a_number_beyond_all_numbers_is_no_entry(bench: Bench) -> None:
    await bench.given_up(b"1")
    (entry,) = await bench.dlq.peek()
    incarnation = entry.entry_id.partition("-")[0]
    with pytest.raises(LetterNotFound):
        await bench.dlq.remove(f"{incarnation}-{1 << 200}")
