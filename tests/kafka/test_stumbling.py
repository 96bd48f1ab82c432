"""A reader that stumbles reads again: it neither stops for good nor passes anything over."""

from collections.abc import Sequence
from typing import Any

import pytest

from redrive.brokers.kafka import KafkaBroker
from redrive.brokers.kafka.entry import Entry
from redrive.brokers.kafka.intake import Intake
from redrive.brokers.kafka.record import Place
from redrive.brokers.kafka.share import Share
from redrive.brokers.kafka.window import Window
from redrive.core.message import Message
from tests.kafka.scenes import join, take


def messages(queue: str, count: int) -> list[Message]:
    return [Message("", queue, b"%d" % number) for number in range(count)]


async def test_what_could_not_be_read_is_read_again_with_what_came_after_it(broker: KafkaBroker, queue: str) -> None:
    worker: Any = await join(broker, queue)
    (intake, _) = worker._membership._intakes  # noqa: SLF001
    read, stumbled = intake._read_one, list[int]()  # noqa: SLF001

    def stumble(message: Any, share: Share, offset: int) -> Entry:
        if message.value() == b"1" and not stumbled:
            stumbled.append(offset)
            raise ArithmeticError("a message that nobody has thought of")
        found: Entry = read(message, share, offset)
        return found

    intake._read_one = stumble  # noqa: SLF001
    await broker.publish(queue, messages(queue, 4))
    taken = await take(worker, 4)

    assert stumbled
    assert sorted(each.message.body for each in taken) == [b"0", b"1", b"2", b"3"]


async def test_a_partition_that_could_not_be_begun_is_begun_again(
    broker: KafkaBroker, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows, stumbled = Intake._windows, list[Sequence[Place]]()  # noqa: SLF001

    def stumble(self: Intake, places: Sequence[Place]) -> dict[Place, Window]:
        if self.topic == queue and not stumbled:
            stumbled.append(places)
            raise KeyError("an answer that nobody has thought of")
        return windows(self, places)

    monkeypatch.setattr(Intake, "_windows", stumble)
    worker = await join(broker, queue)
    await broker.publish(queue, messages(queue, 2))
    taken = await take(worker, 2)

    assert stumbled
    assert len(taken) == 2
