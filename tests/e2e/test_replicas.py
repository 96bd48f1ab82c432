"""Two services on one PostgreSQL and one Redis: together they do everything once, and one goes on without the other."""

from pathlib import Path

from tests.e2e.charging import ChargingShop, begin, metric, progress, states, total
from tests.e2e.serving import Api, until

ORDERS = 500
SLOWLY = 150.0  # letters per second: there is a middle to be struck in


def test_replicas_collect_each_letter_once_and_send_it_once_though_one_is_killed(
    tmp_path: Path, empty_redis: str, empty_postgres: str
) -> None:
    shop = ChargingShop(tmp_path, broker=empty_redis, store=empty_postgres)
    with shop.service() as one, shop.service() as other:
        until(lambda: one.is_ready() and other.is_ready(), what="both are ready")
        shop.die(one, range(ORDERS))
        assert states(one) == states(other) == {"open": ORDERS}
        until(lambda: collected(one) + collected(other) == ORDERS, what="each replica has told what it brought")

        with shop.worker("mended"):
            redrive_id = begin(one, all=True, rate=SLOWLY)
            until(lambda: len(shop.runs(1)) > ORDERS // 10, what="some have come back")
            sender, watcher = (one, other) if sends(one) else (other, one)
            assert not sends(watcher), "a redrive has one redriver at a time"
            sender.kill()
            assert len(shop.runs(1)) < ORDERS
            until(lambda: progress(watcher, redrive_id)["state"] == "done", what="the other has ended it", within=120)

        assert shop.runs(1) == dict.fromkeys(range(ORDERS), 1)
        assert states(watcher) == {"resolved": ORDERS}
        assert total(watcher) == 0
        assert progress(watcher, redrive_id)["progress"] == [{"succeeded": ORDERS}]
        assert watcher.get("/api/v1/audit/verify")["holds"] is True


def collected(api: Api) -> float:
    """How many letters this replica brought to the store."""
    return metric(api, "redrive_collected_total", result="new")


def sends(api: Api) -> bool:
    """Whether this replica has claimed letters of a redrive."""
    return metric(api, "redrive_store_seconds_count", call="claim") > 0
