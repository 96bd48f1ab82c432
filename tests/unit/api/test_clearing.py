from datetime import timedelta
from typing import Any

import pytest

from redrive.core.life import LetterState
from redrive.core.query import Query
from tests.unit.api.stage import Stage

PROBLEM = "application/problem+json"


async def test_a_dry_run_says_what_would_be_discarded_and_discards_nothing() -> None:
    async with Stage() as stage:
        await stage.collect(3, error_type="KeyError")
        await stage.collect(2, prefix="other")

        said = (await stage.post("/letters/discard", {"filter": {"error_type": "KeyError"}, "dry_run": True})).json()

        assert (said["dry_run"], said["total"], said["by_error_type"]) == (True, 3, {"KeyError": 3})
        assert said["selection"] == "error_type=KeyError, state=open|parked"
        assert (await stage.states())["open"] == 5
        assert await stage.verbs() == []


async def test_old_letters_are_counted_and_purged_only_if_that_is_said() -> None:
    async with Stage() as stage:
        now = stage.clock.now()
        await stage.collect(3, failed_at=now - timedelta(days=100))
        await stage.collect(2, prefix="young")

        counted = (await stage.post("/letters/purge", {"older_than": "90d"})).json()
        there = await stage.ids()
        purged = (await stage.post("/letters/purge", {"older_than": 90 * 86400, "dry_run": False})).json()

        assert (counted["dry_run"], counted["letters"], len(there)) == (True, 3, 5)
        assert (purged["dry_run"], purged["letters"], purged["capped"]) == (False, 3, False)
        assert await stage.ids() == ["young-0", "young-1"]
        assert await stage.verbs() == ["letters.purge"]


@pytest.mark.parametrize("said", [{"all": True}, {"filter": {"queue": "orders"}}])
async def test_letters_of_any_age_are_purged_by_a_filter_or_if_all_are_said_to_be_meant(said: Any) -> None:
    async with Stage() as stage:
        await stage.collect(2)
        stage.clock.advance("1s")

        done = (await stage.post("/letters/purge", {"older_than": 0, "dry_run": False, **said})).json()

        assert (done["letters"], await stage.ids()) == (2, [])


async def test_a_purge_is_about_letters_in_whatever_state_unless_told() -> None:
    async with Stage() as stage:
        await stage.collect(2)
        await stage.post("/dlq/messages/letter-0/retry")
        await stage.http.delete("/dlq/messages/letter-1")
        stage.clock.advance("1h")

        only = (await stage.post("/letters/purge", {"older_than": "1s", "filter": {"state": ["open"]}})).json()
        done = (await stage.post("/letters/purge", {"older_than": "1s", "dry_run": False})).json()

        assert (only["letters"], done["letters"]) == (0, 1)
        assert await stage.ids(Query(states=(LetterState.REDRIVING,))) == ["letter-0"]


@pytest.mark.parametrize(
    ("order", "status"),
    [
        ({}, 422),
        ({"older_than": "old"}, 400),
        ({"older_than": -1}, 400),
        ({"older_than": 0}, 400),
        ({"older_than": "0s", "filter": {}}, 400),
        ({"older_than": 0, "all": "yes"}, 422),
        ({"older_than": "1d", "filter": {"kueue": "orders"}}, 422),
        ({"older_than": "1d", "dry_run": "no"}, 422),
        ({"older_than": "1d", "all": True}, 400),
        ({"older_than": 0, "filter": {"queue": "orders"}, "all": True}, 400),
    ],
)
async def test_an_order_to_purge_that_is_unclear_purges_nothing(order: Any, status: int) -> None:
    async with Stage() as stage:
        await stage.collect(1)
        stage.clock.advance("2d")

        answer = await stage.post("/letters/purge", {"dry_run": False, **order})

        assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
        assert await stage.ids() == ["letter-0"]
