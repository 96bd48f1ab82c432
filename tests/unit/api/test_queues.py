from typing import Any

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.core.errors import BrokerUnavailable
from redrive.testing.clock import ManualClock
from tests.unit.api.stage import Stage


class Away(MemoryBroker):
    """A broker that cannot be reached."""

    async def queues(self) -> Any:
        raise BrokerUnavailable("it does not answer")


async def test_queues_are_shown_with_their_depth_and_consumers() -> None:
    async with Stage() as stage:
        await stage.consumer(version="4f2c")

        (row,) = (await stage.ask("/queues")).json()

        assert (row["broker"], row["queue"], row["group"]) == ("memory", "orders", "shop")
        assert (row["waiting"], row["lag"], row["paused"], row["trouble"]) == (0, 0, None, "")
        assert row["versions"] == ["4f2c"]
        assert [worker["name"] for worker in row["workers"]] == ["shop-4f2c"]


async def test_a_broker_that_is_away_does_not_hide_the_others() -> None:
    clock = ManualClock()
    brokers = {"far": Away(name="far", clock=clock), "near": MemoryBroker(name="near", clock=clock)}
    async with Stage(brokers=brokers) as stage:
        answer = await stage.ask("/queues")

        assert answer.status_code == 200
        assert [(row["broker"], row["trouble"]) for row in answer.json()] == [("far", "it does not answer")]


async def test_what_is_kept_beside_queues_is_there_only_if_all_is_said() -> None:
    async with Stage(queues={"memory": ("orders",)}) as stage:
        for queue in ("orders", "mail", "orders.outcomes"):
            await stage.consumer(queue)

        some, everything = [(await stage.ask(f"/queues{query}")).json() for query in ("", "?all=true")]

        assert [row["queue"] for row in some] == ["orders"]
        assert [row["queue"] for row in everything] == ["mail", "orders", "orders.outcomes"]


async def test_a_group_is_paused_and_resumed_and_the_audit_knows() -> None:
    async with Stage() as stage:
        await stage.consumer("shop/orders")

        paused = await stage.post("/queues/pause", {"queue": "shop/orders", "why": "the bank is down"})
        shown = (await stage.ask("/queues")).json()
        resumed = await stage.post("/queues/resume", {"queue": "shop/orders", "group": "shop", "broker": "memory"})

        assert (paused.status_code, paused.json()["paused"]) == (200, "the bank is down")
        assert shown[0]["paused"] == "the bank is down"
        assert resumed.json()["paused"] is None
        assert await stage.verbs() == ["queues.pause", "queues.resume"]


async def test_held_messages_are_released() -> None:
    async with Stage() as stage:
        await stage.consumer()

        said = (await stage.post("/queues/release", {"queue": "orders"})).json()

        assert said == {"broker": "memory", "queue": "orders", "group": "shop", "released": 0}
        assert await stage.verbs() == ["queues.release"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"queue": "nowhere"}, 404),
        ({"queue": "orders", "group": "nobody"}, 404),
        ({"queue": "orders", "broker": "mars"}, 404),
        ({"queue": "../../etc/passwd"}, 404),
        ({"queue": "{}"}, 404),
        ({"queue": ""}, 422),
        ({"queue": "a\x00b"}, 422),
        ({"queue": "a" * 2000}, 422),
        ({"queue": "orders", "why": "x" * 501}, 422),
        ({"queue": "orders", "wy": "typing error"}, 422),
        ({"queue": ["orders"]}, 422),
        ({}, 422),
        ("orders", 422),
    ],
)
async def test_a_pause_that_makes_no_sense_is_refused_and_leaves_no_record(body: Any, status: int) -> None:
    async with Stage() as stage:
        await stage.consumer()

        answer = await stage.post("/queues/pause", body)

        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert await stage.verbs() == []


async def test_several_groups_or_brokers_must_be_told_apart() -> None:
    clock = ManualClock()
    async with Stage(brokers={name: MemoryBroker(name=name, clock=clock) for name in ("a", "b")}) as stage:
        answer = await stage.post("/queues/pause", {"queue": "orders"})

        assert answer.status_code == 400
        assert "there are several, say which: a, b" in answer.json()["detail"]
