from datetime import datetime, timedelta
from typing import Any

import pytest

from redrive.core.access import Role
from redrive.triage.access import Caller, recognise
from tests.unit.api.stage import Stage


async def test_an_issued_token_opens_the_door_and_its_secret_is_in_no_other_answer() -> None:
    async with Stage() as stage:
        answer = await stage.post("/tokens", {"name": "ci", "role": "operator", "expires_in": "90d"})
        issued = answer.json()
        listed = await stage.ask("/tokens")
        audit = await stage.ask("/audit")

        assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
        caller = await recognise(stage.store, issued["secret"], stage.clock.now())
        assert caller == Caller("ci", Role.OPERATOR)
        lasts = datetime.fromisoformat(issued["expires_at"]) - datetime.fromisoformat(issued["created_at"])
        assert (lasts, issued["created_by"]) == (timedelta(days=90), "local")
        assert [one["name"] for one in listed.json()] == ["ci"]
        assert not any(issued["secret"] in text for text in (listed.text, audit.text))
        assert await stage.verbs() == ["tokens.issue"]


async def test_a_revoked_token_opens_nothing_and_keeps_its_instant() -> None:
    async with Stage() as stage:
        issued = (await stage.post("/tokens", {"name": "ci", "role": "viewer"})).json()
        first = (await stage.post(f"/tokens/{issued['token_id']}/revoke")).json()
        stage.clock.advance("1h")
        again = (await stage.post(f"/tokens/{issued['token_id']}/revoke")).json()

        assert first == again
        assert first["revoked_at"] is not None
        assert await recognise(stage.store, issued["secret"], stage.clock.now()) is None


async def test_a_token_that_is_not_there_cannot_be_revoked() -> None:
    async with Stage() as stage:
        assert (await stage.post("/tokens/nothing/revoke")).status_code == 404


async def test_every_mistake_is_told_at_once() -> None:
    async with Stage() as stage:
        answer = await stage.post("/tokens", {"name": "a\nb", "role": "viewer", "expires_in": "soon"})

        assert (answer.status_code, [one["at"] for one in answer.json()["errors"]]) == (400, ["name", "expires"])


@pytest.mark.parametrize(
    "order",
    [{}, {"name": "ci"}, {"name": "ci", "role": "boss"}, {"name": "ci", "role": "viewer", "secret": "mine"}],
)
async def test_an_order_that_is_none_makes_no_token(order: Any) -> None:
    async with Stage() as stage:
        assert (await stage.post("/tokens", order)).status_code == 422
        assert (await stage.ask("/tokens")).json() == []


async def test_only_an_admin_sees_who_has_a_token() -> None:
    async with Stage(needs_token=True) as stage:
        for role, status in ((Role.VIEWER, 403), (Role.OPERATOR, 403), (Role.ADMIN, 200)):
            headers = await stage.token(role)
            assert (await stage.ask("/tokens", headers=headers)).status_code == status
            assert (await stage.post("/tokens/nothing/revoke", headers=headers)).status_code in (403, 404)
