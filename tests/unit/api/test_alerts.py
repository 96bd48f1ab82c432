from typing import Any

import pytest

from redrive.core.access import Role
from tests.unit.api.stage import Stage
from tests.unit.triage.notifying import Hearing


async def test_every_notifier_is_sent_a_test_and_the_audit_knows_what_came_of_it() -> None:
    hears, deaf = Hearing("webhook", "https://chat.example/***"), Hearing("alertmanager", "http://am:9093", why="away")
    async with Stage(notifiers=[hears, deaf]) as stage:
        answer = await stage.post("/alerts/test")
        (record,) = (await stage.store.records()).rows

    assert answer.status_code == 200
    assert answer.json() == [
        {"notifier": "webhook", "place": "https://chat.example/***", "taken": True, "why": ""},
        {"notifier": "alertmanager", "place": "http://am:9093", "taken": False, "why": "away"},
    ]
    (alert,) = hears.heard
    assert (alert.rule, alert.headline) == (
        "test",
        "local wants to know whether this is heard; nothing has happened",
    )
    assert (record.verb, record.who) == ("alerts.test", "local")
    assert record.detail == {"notifiers": {"https://chat.example/***": "taken", "http://am:9093": "away"}}


async def test_where_nobody_is_told_nobody_is_tried() -> None:
    async with Stage() as stage:
        assert (await stage.post("/alerts/test")).json() == []


async def test_who_is_no_admin_sends_nothing() -> None:
    hears = Hearing("webhook", "x")
    async with Stage(needs_token=True, notifiers=[hears]) as stage:
        for role in (Role.VIEWER, Role.OPERATOR):
            assert (await stage.post("/alerts/test", headers=await stage.token(role))).status_code == 403

    assert hears.heard == []


@pytest.mark.parametrize(
    "body", [{"ends_in": "soon"}, {"ends_in": True}, {"ends_in": -1}, {"ends_in": 0}, {"until": "8h"}, "8h"]
)
async def test_a_mute_whose_end_makes_no_sense_is_refused(body: Any) -> None:
    async with Stage() as stage:
        await stage.collect(1)
        (incident,) = (await stage.ask("/incidents")).json()

        answer = await stage.post(f"/incidents/{incident['incident_id']}/mute", body)

        assert answer.status_code in (400, 422)
        assert (await stage.ask("/incidents")).json() == [incident]
