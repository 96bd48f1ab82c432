import json
import re
import sys
from datetime import timedelta

import pytest

from redrive.core.outcome import GiveUp, Settlement
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Broker, Options
from tests.unit.cli.conftest import Shop, a_letter


@pytest.fixture
def shop(either: Shop) -> Shop:
    return either


def facts(shop: Shop) -> dict[tuple[str, str], dict[str, object]]:
    rows = [json.loads(line) for line in shop.run("queues", "--json").lines]
    return {(row["queue"], row["group"]): row for row in rows}


def test_the_list_shows_how_much_is_where(shop: Shop) -> None:
    shop.subscribe("orders")
    shop.run("publish", "orders", "now")
    shop.run("publish", "orders", "later", "--delay", "1h")
    shop.bury(a_letter())

    row = facts(shop)["orders", "shop"]

    assert (row["waiting"], row["scheduled"], row["in_flight"], row["dead"]) == (1, 1, 0, 1)
    assert (row["workers"], row["paused"]) == (0, None)


def test_the_list_is_a_table_of_plain_columns_in_a_pipe(shop: Shop) -> None:
    shop.subscribe("orders")
    shop.run("publish", "orders", "now")

    said = shop.run("queues")

    assert said.status == 0
    assert said.lines[0].split() == [
        *("queue", "group", "waiting", "in", "flight", "scheduled", "held", "dead", "oldest", "workers", "paused"),
    ]
    assert said.lines[1].split()[:3] == ["orders", "shop", "1"]
    assert shop.run("queues", "list").lines[0] == said.lines[0]


def test_a_queue_that_nobody_consumes_yet_is_in_the_list(shop: Shop) -> None:
    shop.run("publish", "orders", "now")

    assert facts(shop)["orders", ""]["waiting"] == 1


def test_a_queue_is_paused_with_a_reason_and_resumed(shop: Shop) -> None:
    shop.subscribe("orders")

    paused = shop.run("queues", "pause", "orders", "--group", "shop", "--why", "the bank is down")
    seen = facts(shop)["orders", "shop"]["paused"]
    resumed = shop.run("queues", "resume", "orders")

    assert paused.out == "paused orders for shop: the bank is down\n"
    assert seen == "the bank is down"
    assert resumed.out == "resumed orders for shop\n"
    assert facts(shop)["orders", "shop"]["paused"] is None


def test_with_several_groups_one_must_be_named(shop: Shop) -> None:
    shop.subscribe("orders", group="shop")
    shop.subscribe("orders", group="audit")

    said = shop.run("queues", "pause", "orders")

    assert said.status == 2
    assert said.err == "redrive: --group: queue 'orders' has several groups, say which: audit, shop\n"


def test_a_queue_or_group_that_is_not_there_is_told_with_those_that_are(shop: Shop) -> None:
    shop.subscribe("orders")

    nowhere = shop.run("queues", "pause", "ordres")
    nobody = shop.run("queues", "pause", "orders", "--group", "shoop")

    assert (nowhere.status, nobody.status) == (4, 4)
    assert nobody.err == "redrive: queue 'orders' has no group 'shoop'; there are shop\n"


def test_what_is_held_runs_again_after_release(shop: Shop) -> None:
    async def hold(broker: Broker) -> None:
        place = DeadLetterPlace(enabled=False, off="hold")
        options = Options(owner="w", dlq=place)
        subscription = await broker.subscribe("orders", group="shop", options=options)
        (delivery,) = await subscription.fetch(1, wait=timedelta(0))
        await subscription.settle([Settlement(delivery, GiveUp("no"))])
        await subscription.aclose()

    shop.subscribe("orders")
    shop.run("publish", "orders", "x")
    shop.ask(hold)
    held = facts(shop)["orders", "shop"]["held"]

    said = shop.run("queues", "release", "orders")

    assert held == 1
    assert said.out == "released 1 held messages of orders for shop\n"
    assert (facts(shop)["orders", "shop"]["held"], facts(shop)["orders", "shop"]["waiting"]) == (0, 1)


def test_a_worker_that_holds_back_by_itself_says_why(shop: Shop) -> None:
    async def beat(broker: Broker) -> None:
        for owner, paused in (("w-1", "its breaker is open"), ("w-2", None)):
            subscription = await broker.subscribe("orders", group="shop", options=Options(owner=owner))
            await subscription.heartbeat(paused=paused)

    shop.ask(beat)
    some = facts(shop)["orders", "shop"]
    shop.run("queues", "pause", "orders", "--why", "the bank is down")
    by_a_person = facts(shop)["orders", "shop"]

    assert (some["workers"], some["paused"]) == (2, "its breaker is open (1 of 2 workers)")
    assert by_a_person["paused"] == "the bank is down"


def listed(shop: Shop, *flags: str) -> list[str]:
    return [json.loads(line)["queue"] for line in shop.run("queues", *flags, "--json").lines]


def test_what_redrive_keeps_beside_a_queue_is_listed_below_it_only_if_asked_for(shop: Shop) -> None:
    for queue in ("orders-eu", "orders"):
        shop.run("publish", queue, "now")
        shop.run("publish", f"{queue}.outcomes", "news")
        shop.bury(a_letter(queue=queue))

    assert listed(shop) == ["orders", "orders-eu"]
    assert listed(shop, "--all") == [
        *("orders", "orders.dlq", "orders.outcomes"),
        *("orders-eu", "orders-eu.dlq", "orders-eu.outcomes"),
    ]


def test_a_dlq_whose_queue_is_not_there_is_listed(shop: Shop) -> None:
    shop.bury(a_letter())

    assert listed(shop) == ["orders.dlq"]


@pytest.mark.parametrize("width", [80, 110])
def test_the_table_fits_the_terminal_and_shows_why_a_queue_is_paused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    shop.subscribe("orders")
    shop.run("publish", "orders", "now")
    shop.run("publish", "orders", "later", "--delay", "1h")
    shop.run("publish", "orders.outcomes", "news")
    shop.bury(a_letter())
    shop.run("queues", "pause", "orders", "--why", "the bank is down")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))

    lines = re.sub(r"\x1b\[[\d;]*m", "", shop.run("queues", "--all").out).splitlines()

    assert len(lines) == 4
    assert max(map(len, lines)) <= width
    head, orders, *_ = (line.split() for line in lines)
    assert head[-1] == "paused"
    assert orders[:3] == ["orders", "shop", "1"]
    assert orders[-4:] == ["the", "bank", "is", "down"]
