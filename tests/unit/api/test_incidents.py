from typing import Any

import pytest

from redrive.core.access import Role
from tests.unit.api.stage import Stage

SAME_WAY = "0123456789abcdef"


async def failing(stage: Stage, count: int = 3, **changes: Any) -> None:
    await stage.collect(count, **{"fingerprint": SAME_WAY, **changes})


async def test_incidents_are_listed_by_state_latest_first_and_page_by_page() -> None:
    async with Stage() as stage:
        for number in range(3):
            await failing(stage, 1, prefix=f"p{number}", fingerprint=f"f{number}")
            stage.clock.advance("1m")
        await stage.post("/incidents/f1/mute")

        first = await stage.ask("/incidents?limit=1")
        second = await stage.next_of(first)
        every = await stage.ask("/incidents", params={"state": "all"})

        assert [one["incident_id"] for one in first.json()] == ["f2"]
        assert [one["incident_id"] for one in second.json()] == ["f0"]
        assert "link" not in second.headers
        assert [(one["incident_id"], one["state"]) for one in every.json()] == [
            ("f2", "open"),
            ("f1", "muted"),
            ("f0", "open"),
        ]


async def test_an_incident_is_shown_with_its_hours_and_what_its_letters_have_in_common() -> None:
    async with Stage() as stage:
        await failing(stage)

        found = (await stage.ask(f"/incidents/{SAME_WAY}")).json()

        assert (found["open"], found["total"], found["queues"]) == (3, 3, ["orders"])
        assert [hour["deaths"] for hour in found["hours"]] == [3]
        assert {"field": "queue", "value": "orders", "count": 3, "of": 3} in found["alike"]
        assert found["latest"] == ["letter-2", "letter-1", "letter-0"]


async def test_what_letters_share_is_masked() -> None:
    async with Stage() as stage:
        await failing(stage, context={"password": "hunter22", "shop": "north"}, error_message="token=abcdefgh is bad")

        answer = await stage.ask(f"/incidents/{SAME_WAY}")
        shared = {one["field"]: one["value"] for one in answer.json()["alike"]}

        assert (shared["context.password"], shared["context.shop"]) == ("***", "north")
        assert "hunter22" not in answer.text
        assert "abcdefgh" not in answer.text + (await stage.ask("/incidents")).text


@pytest.mark.parametrize(
    ("verb", "body", "changed"),
    [
        ("note", {"text": "the bank changed its API"}, {"note": "the bank changed its API"}),
        ("assign", {"assignee": "sam"}, {"assignee": "sam"}),
        ("assign", {"assignee": ""}, {"assignee": ""}),
        ("mute", None, {"state": "muted", "muted_until": None}),
        ("mute", {}, {"state": "muted", "muted_until": None}),
        ("mute", {"ends_in": "8h"}, {"state": "muted", "muted_until": "2030-01-01T08:00:00Z"}),
        ("resolve", None, {"state": "resolved"}),
        ("reopen", None, {"state": "open"}),
    ],
)
async def test_an_incident_is_looked_after_and_the_audit_knows(verb: str, body: Any, changed: Any) -> None:
    async with Stage() as stage:
        await failing(stage)

        answer = await stage.post(f"/incidents/{SAME_WAY}/{verb}", body)

        assert answer.status_code == 200
        assert {name: answer.json()[name] for name in changed} == changed
        assert await stage.verbs() == [f"incidents.{verb}"]


async def test_a_viewer_looks_and_changes_nothing() -> None:
    async with Stage(needs_token=True) as stage:
        await failing(stage)
        viewer = await stage.token(Role.VIEWER)
        before = await stage.verbs()

        assert (await stage.ask("/incidents", headers=viewer)).status_code == 200
        assert (await stage.ask(f"/incidents/{SAME_WAY}", headers=viewer)).status_code == 200
        for verb in ("note", "assign", "mute", "resolve", "reopen"):
            answer = await stage.post(f"/incidents/{SAME_WAY}/{verb}", {"text": "x"}, headers=viewer)
            assert answer.status_code == 403
        assert await stage.verbs() == before


@pytest.mark.parametrize("incident", ["nobody", "%00", "%2e%2e", "a%20b", "'; drop table letter", "x" * 3000])
async def test_an_incident_that_is_none_is_not_found(incident: str) -> None:
    async with Stage() as stage:
        for answer in (
            await stage.ask(f"/incidents/{incident}"),
            await stage.post(f"/incidents/{incident}/mute"),
        ):
            assert answer.status_code in (404, 422)
            assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/incidents?state=closed", 422),
        ("/incidents?limit=0", 422),
        ("/incidents?limit=101", 422),
        ("/incidents?after=gibberish", 400),
        ("/incidents?after=", 422),
        ("/incidents?stat=open", 422),
    ],
)
async def test_parameters_that_make_no_sense_are_refused(path: str, status: int) -> None:
    async with Stage() as stage:
        answer = await stage.ask(path)

        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


@pytest.mark.parametrize("text", ["x" * 4001, "a\x00b", 7, None])
async def test_a_note_that_cannot_be_kept_is_refused(text: Any) -> None:
    async with Stage() as stage:
        await failing(stage)

        assert (await stage.post(f"/incidents/{SAME_WAY}/note", {"text": text})).status_code == 422


async def test_a_note_of_half_a_character_is_refused() -> None:
    async with Stage() as stage:
        await failing(stage)

        body = b'{"text": "\\ud800"}'
        answer = await stage.http.post(f"/incidents/{SAME_WAY}/note", content=body)

        assert answer.status_code == 422


async def test_the_type_of_an_error_is_masked_too() -> None:
    async with Stage() as stage:
        await stage.collect(1, fingerprint="f0", error_type="NoUser:ann@example.com")

        for path in ("/incidents", "/incidents/f0"):
            answer = await stage.ask(path)
            assert ('"NoUser:***"' in answer.text, "ann@example.com" in answer.text) == (True, False), path
