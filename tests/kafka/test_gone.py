"""What has left a DLQ: nobody reads it again, and whoever asks for it hears where it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from redrive.brokers.kafka import KafkaBroker
from redrive.brokers.kafka.gone import Looks
from redrive.brokers.kafka.logs import Logs
from redrive.brokers.kafka.record import Place, Read
from redrive.core.errors import LetterNotFound
from redrive.core.outcome import Settlement
from redrive.core.ports import Options
from tests.kafka.scenes import begin_again, begin_topic, server_of, take
from tests.unit.core.letters import a_letter

HERE: Place = ("orders.dlq", 0)
LIFE = "4YxMeFLkR_mtKH9Wt8pYkQ"


def read(offset: int) -> Read:
    return Read(*HERE, offset, b"", (), None, 0)


def test_a_look_begins_where_the_last_one_found_the_first_entry_that_is_still_there() -> None:
    looks = Looks()
    assert looks.spans(LIFE, {HERE: 2}, {HERE: 9}) == {HERE: (2, 9)}
    looks.found(LIFE, {HERE: (2, 9)}, [read(7), read(5)])

    assert looks.spans(LIFE, {HERE: 2}, {HERE: 12}) == {HERE: (5, 12)}
    assert looks.spans(LIFE, {HERE: 6}, {HERE: 12}) == {HERE: (6, 12)}


def test_where_nothing_is_left_only_what_comes_is_looked_at() -> None:
    looks = Looks()
    looks.found(LIFE, {HERE: (2, 9)}, [])

    assert looks.spans(LIFE, {HERE: 2}, {HERE: 9}) == {HERE: (9, 9)}


@pytest.mark.parametrize(("life", "end"), [(LIFE, 3), ("another", 30)], ids=["it is shorter", "it has another id"])
def test_a_dlq_that_was_begun_again_is_looked_at_from_its_start(life: str, end: int) -> None:
    looks = Looks()
    looks.found(LIFE, {HERE: (2, 9)}, [])

    assert looks.spans(life, {HERE: 0}, {HERE: end}) == {HERE: (0, end)}


async def collect(broker: KafkaBroker, dlq: str, count: int) -> Any:
    """What a collector does. Return it."""
    collector = await broker.subscribe(dlq, group="redrive", options=Options(owner="collector", moves=True))
    taken = await take(collector, count)
    await collector.settle([Settlement(each) for each in taken])
    return collector


async def bury(broker: KafkaBroker, queue: str, count: int) -> list[str]:
    """Letters in the one partition of a DLQ; their entries, in their order."""
    letters = broker.dead_letters(queue)
    for number in range(count):
        await letters.send(a_letter(queue=queue, letter_id=f"{number:032x}"))
    return [entry.entry_id for entry in await letters.peek()]


async def test_what_was_collected_is_not_read_again_to_count_the_rest(
    broker: KafkaBroker, kafka_url: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_topic(kafka_url, f"{queue}.dlq")
    letters = broker.dead_letters(queue)
    await bury(broker, queue, 3)
    await collect(broker, f"{queue}.dlq", 3)
    assert await letters.length() == 0
    await letters.send(a_letter(queue=queue, letter_id="f" * 32))
    reading, seen = Logs.read, list[Read]()

    def watch(self: Logs, spans: Mapping[Place, tuple[int, int]], **options: Any) -> Sequence[Read]:
        found = reading(self, spans, **options)
        seen.extend(each for each in found if each.topic == f"{queue}.dlq")
        return found

    monkeypatch.setattr(Logs, "read", watch)

    assert await letters.length() == 1
    assert len(seen) == 1


async def test_whoever_asks_for_an_entry_that_has_left_hears_how_it_left(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    begin_topic(kafka_url, f"{queue}.dlq")
    letters = broker.dead_letters(queue)
    redriven, removed, collected = await bury(broker, queue, 3)
    await letters.redrive(redriven)
    await letters.remove(removed)
    await collect(broker, f"{queue}.dlq", 1)

    for entry_id, why in (
        (redriven, "was redriven already"),
        (removed, "was removed"),
        (collected, "was collected: redrive it from the store"),
        ("0-999", "no entry"),
    ):
        with pytest.raises(LetterNotFound, match=why):
            await letters.redrive(entry_id)


async def test_the_ledger_forgets_what_the_log_of_a_dlq_has_forgotten_and_the_letter_may_come_again(
    broker: KafkaBroker, kafka_url: str, queue: str
) -> None:
    dlq = f"{queue}.dlq"
    begin_topic(kafka_url, dlq)
    letters = broker.dead_letters(queue)
    (first, second) = await bury(broker, queue, 2)
    collector = await collect(broker, dlq, 2)
    end = int(second.partition("-")[2])
    admin = AdminClient({"bootstrap.servers": server_of(kafka_url)})
    admin.delete_records([TopicPartition(dlq, 0, end)])[TopicPartition(dlq, 0)].result(30)
    collector._membership.calls.submit(collector._membership.trim).result(30)  # noqa: SLF001
    rows = dict(broker._office.ledger.refresh())  # noqa: SLF001
    await letters.send(a_letter(queue=queue, letter_id="0" * 32))

    assert f"gone:{dlq}-{first}" not in rows
    assert f"gone:{dlq}-{second}" in rows
    assert len([key for key in rows if key.startswith(f"letter:{dlq}:")]) == 1
    assert [entry.letter.letter_id for entry in await letters.peek()] == ["0" * 32]


async def test_what_has_left_a_dlq_says_nothing_of_one_that_was_begun_again_under_its_name(
    broker: KafkaBroker, connect: Callable[[str], KafkaBroker], kafka_url: str, queue: str
) -> None:
    dlq = f"{queue}.dlq"
    begin_topic(kafka_url, dlq)
    letters = broker.dead_letters(queue)
    redriven, removed, _ = await bury(broker, queue, 3)
    await letters.redrive(redriven)
    await letters.remove(removed)
    collector = await collect(broker, dlq, 1)
    begin_again(kafka_url, dlq)
    again = await bury(connect(kafka_url), queue, 4)

    assert [entry.entry_id for entry in await letters.peek()] == again
    assert [entry.entry_id for entry in await connect(kafka_url).dead_letters(queue).peek()] == again
    await letters.remove(again[0])
    collected: set[str] = set()
    while await letters.length():  # some may be collected twice: before it is seen that the topic is another, and after
        taken = await take(collector, 1)
        collected |= {each.message.id for each in taken}
        await collector.settle([*map(Settlement, taken)])
    assert collected == {f"{dlq}-{entry}" for entry in again[1:]}
    assert {key for key in broker._office.ledger.refresh() if key.startswith(f"gone:{dlq}-")} == {  # noqa: SLF001
        f"gone:{dlq}-{entry}" for entry in again
    }
