"""The whole way on Redis, worker, service and commands in processes of their own; also past deaths in its middle."""

import time
from pathlib import Path

import pytest

from tests.e2e.charging import ChargingShop, begin, metric, post, progress, states, total
from tests.e2e.serving import Api, until
from tests.servers.postgres import PostgresServer
from tests.servers.redis import ask

ORDERS = 120
SLOWLY = 60.0  # letters per second: there is a middle to be struck in
AWAY = 10.0  # seconds for which a store is away: beyond the first patience of everybody who asks it


@pytest.fixture
def shop(tmp_path: Path, empty_redis: str) -> ChargingShop:
    return ChargingShop(tmp_path, broker=empty_redis, store="sqlite:///letters.db")


def test_an_order_dies_is_edited_and_goes_back_behind_a_canary(
    tmp_path: Path, empty_redis: str, empty_postgres: str
) -> None:
    shop = ChargingShop(tmp_path, broker=empty_redis, store=empty_postgres)
    with shop.service() as api:
        url = ("--url", str(api.client.base_url))
        shop.publish(range(19))
        shop.run("publish", "orders", '{"id": 19}')
        with shop.worker("broken"):
            until(lambda: total(api) == 20, what="all are dead, and collected")
        assert shop.runs(0) == dict.fromkeys(range(20), 3)
        (lacking,) = api.letters(queue="orders", q='{"id": 19}')
        whole = api.get(f"/api/v1/dlq/messages/{lacking['message_id']}")
        assert (whole["error_type"], whole["reason"], whole["retry_count"]) == ("ValueError", "attempts_exhausted", 3)
        assert [one["number"] for one in whole["attempts"]] == [1, 2, 3]
        (incident,) = api.get("/api/v1/incidents")

        edit = post(api, f"/api/v1/letters/{lacking['message_id']}/edit", json={"id": 19, "price": 12})
        assert '"price"' in edit["difference"]
        with shop.worker("mended"):
            order = {"filter": {"queue": "orders"}, "canary": [1, 5]}
            redrive_id = begin(api, **order)
            until(lambda: progress(api, redrive_id)["state"] == "done", what="the redrive is done")

        done = progress(api, redrive_id)
        assert done["verdict"] == (
            "Sent 1, it succeeded on version mended; sent 5, then 14: 20 resolved, 0 unconfirmed"
        )
        assert states(api) == {"resolved": 20}
        assert shop.runs(1) == dict.fromkeys(range(20), 1)
        assert [19, 1, 12] in shop.noted()
        assert len(shop.facts("letters", "list", "--state", "resolved", *url)) == 20
        (shown,) = shop.facts("redrives", "show", redrive_id, *url)
        assert shown["verdict"] == done["verdict"]
        verbs = [record["verb"] for record in api.get("/api/v1/audit", letter_id=lacking["message_id"])]
        assert verbs[::-1][:2] == ["letters.edit", "letters.redrive"]
        assert (incident["total"], incident["error_type"]) == (20, "ValueError")
        assert api.get("/api/v1/audit/verify")["holds"] is True


def test_a_service_killed_in_the_middle_of_a_redrive_loses_nothing_and_sends_nothing_twice(shop: ChargingShop) -> None:
    with shop.service() as api:
        shop.die(api, range(ORDERS))
        with shop.worker("mended"):
            redrive_id = begin(api, all=True, rate=SLOWLY)
            until(lambda: len(shop.runs(1)) > ORDERS // 10, what="some have come back")
            api.kill()
            assert len(shop.runs(1)) < ORDERS

            with shop.service() as after:
                until(lambda: progress(after, redrive_id)["state"] == "done", what="the next service has ended it")
                check_all_back(after, shop, redrive_id)


def test_a_store_that_is_away_in_the_middle_of_a_redrive_loses_nothing_and_is_caught_up(
    tmp_path: Path, empty_redis: str, fresh_postgres: PostgresServer
) -> None:
    shop = ChargingShop(tmp_path, broker=empty_redis, store=fresh_postgres.url)
    with shop.service() as api:
        until(api.is_ready, what="ready")
        shop.die(api, range(ORDERS))
        with shop.worker("mended"):
            redrive_id = begin(api, all=True, rate=SLOWLY)
            until(lambda: len(shop.runs(1)) > ORDERS // 10, what="some have come back")
            fresh_postgres.kill()
            killed_at = time.monotonic()
            assert len(shop.runs(1)) < ORDERS
            until(lambda: api.readiness()["store"] != "ok", what="told")
            shop.run("publish", "orders", f'{{"id": {ORDERS}}}')  # it has no price
            until(lambda: lag(api) > 0, what="the lag is shown")
            until(lambda: dead(api) == 1, what="what is not collected is shown")
            assert api.readiness()["broker:redis"] == "ok"
            assert ask(empty_redis, "XLEN", "orders:dlq") == 1

            until(lambda: time.monotonic() - killed_at > AWAY, what="the store was away for long enough")
            assert api.readiness()["store"] != "ok"
            fresh_postgres.start()
            until(lambda: progress_or_none(api, redrive_id) == "done", what="the redrive is done")
            until(lambda: total(api) == 1, what="caught up")
            until(lambda: lag(api) == 0, what="the lag is gone")
            assert dead(api) == 0
            assert api.is_ready()
            (late,) = api.letters()
            assert late["error_type"] == "KeyError"
            assert api.client.delete(f"/api/v1/dlq/messages/{late['message_id']}").status_code == 200
        check_all_back(api, shop, redrive_id, discarded=1)


def check_all_back(api: Api, shop: ChargingShop, redrive_id: str, **others: int) -> None:
    """Every order went back once, and the store knows it."""
    assert shop.runs(1) == dict.fromkeys(range(ORDERS), 1)
    assert states(api) == {"resolved": ORDERS, **others}
    assert progress(api, redrive_id)["progress"] == [{"succeeded": ORDERS}]
    assert api.get("/api/v1/audit/verify")["holds"] is True


def lag(api: Api) -> float:
    return metric(api, "redrive_collect_lag_seconds", queue="orders:dlq") + metric(
        api, "redrive_collect_lag_seconds", queue="orders:outcomes"
    )


def dead(api: Api) -> int:
    """Letters that are still in the DLQ, as the API tells."""
    return sum(queue["dead"] for queue in api.get("/api/v1/queues") if queue["queue"] == "orders")


def progress_or_none(api: Api, redrive_id: str) -> str | None:
    """Its state; None while the store is away, which is an honest 503."""
    answer = api.client.get(f"/api/v1/redrives/{redrive_id}")
    assert answer.status_code in (200, 503)
    return str(answer.json()["state"]) if answer.status_code == 200 else None
