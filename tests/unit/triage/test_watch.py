from datetime import UTC, datetime
from typing import Any

import pytest

from redrive.core.message import Message
from redrive.core.ports import Options
from redrive.core.redrive import Redrive, Target
from redrive.triage.watch import why
from tests.unit.triage.bench import Bench

TO_QUEUE = Target("memory", "orders", "")
TO_LANE = Target("memory", "mails", "shop")


def a_redrive(*targets: Target, **terms: Any) -> Redrive:
    at = datetime(2026, 1, 31, tzinfo=UTC)
    return Redrive(redrive_id="r1", created_at=at, by="sam", selection="", total=1, targets=targets, **terms)


async def test_letters_in_a_queue_that_nobody_reads_wait_for_a_group() -> None:
    bench = Bench()
    await bench.broker.publish("orders", [Message(id="", queue="orders", body=b"{}")])

    assert await why(a_redrive(TO_QUEUE), bench.brokers) == "no group reads orders yet"


@pytest.mark.parametrize(
    ("confirm", "said"),
    [
        ("reported", "nothing reports back: tell the outcome of each letter, or it ends unconfirmed"),
        ("quiet", "nothing reports back: what does not die again in time is taken as done"),
        ("manual", "nothing reports back: tell the outcome of each letter"),
    ],
)
async def test_of_letters_in_the_queue_itself_nobody_says_that_a_consumer_works(confirm: str, said: str) -> None:
    bench = Bench()
    await bench.broker.subscribe("orders", group="shop", options=Options(owner="a"))

    assert await why(a_redrive(TO_QUEUE, confirm=confirm), bench.brokers) == said


async def test_of_several_targets_the_one_that_is_in_the_way_is_named() -> None:
    bench = Bench()
    await (await bench.broker.subscribe("mails", group="shop", options=Options(owner="a"))).heartbeat()
    await bench.broker.publish("orders", [Message(id="", queue="orders", body=b"{}")])

    assert await why(a_redrive(TO_LANE), bench.brokers) == "the consumer is working"
    assert await why(a_redrive(TO_LANE, TO_QUEUE), bench.brokers) == "orders: no group reads orders yet"
