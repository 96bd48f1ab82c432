import asyncio
from typing import Any

import pytest

from redrive.core.access import Role
from redrive.core.errors import BrokerUnavailable
from redrive.triage import letters
from tests.unit.api.stage import Stage
from tests.unit.triage.bench import succeeds

ALL = {"filter": {"queue": "orders"}}


async def previewed(stage: Stage, **order: Any) -> dict[str, Any]:
    answer = await stage.post("/redrives", order or ALL)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def begun(stage: Stage, **order: Any) -> dict[str, Any]:
    order = order or ALL
    token = (await previewed(stage, **order))["preview"]
    answer = await stage.post("/redrives", {**order, "dry_run": False, "preview": token})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_unless_told_otherwise_it_is_a_dry_run() -> None:
    async with Stage() as stage:
        await stage.collect(40, error_type="KeyError")

        plan = await previewed(stage, **ALL, canary=[1, 5], rate=200)

        assert (plan["dry_run"], plan["total"], plan["steps"]) == (True, 40, [1, 5, 34])
        assert plan["targets"] == [{"broker": "memory", "queue": "orders", "group": "shop", "letters": 40}]
        assert (plan["by_error_type"], plan["by_state"]) == ({"KeyError": 40}, {"open": 40})
        assert plan["selection"] == "queue=orders, state=open"
        assert (await stage.ask("/redrives")).json() == []
        assert await stage.verbs() == []


async def test_what_was_previewed_is_begun_and_nothing_else() -> None:
    async with Stage() as stage:
        await stage.collect(3)
        token = (await previewed(stage))["preview"]
        await stage.collect(4, prefix="later")

        answer = await stage.post("/redrives", {**ALL, "dry_run": False, "preview": token})
        made = answer.json()

        assert (answer.status_code, made["total"], made["state"]) == (201, 3, "running")
        assert answer.headers["location"] == f"/api/v1/redrives/{made['redrive_id']}"
        shown = (await stage.ask(f"/redrives/{made['redrive_id']}")).json()
        assert (shown["progress"], shown["by"]) == ([{"planned": 3}], "local")
        assert await stage.verbs() == ["letters.redrive"]


async def test_what_changed_since_the_preview_is_a_conflict() -> None:
    async with Stage() as stage:
        await stage.collect(3)
        token = (await previewed(stage))["preview"]
        await letters.discard(stage.desk, await stage.selection(letter_ids=["letter-1"]))

        answer = await stage.post("/redrives", {**ALL, "dry_run": False, "preview": token})

        assert answer.status_code == 409
        assert "look again" in answer.json()["detail"]
        assert (await stage.ask("/redrives")).json() == []


async def test_a_preview_of_another_request_is_a_conflict() -> None:
    async with Stage() as stage:
        await stage.collect(3)
        token = (await previewed(stage, **ALL, canary=[1]))["preview"]

        for order in (ALL, {"all": True, "canary": [1], "rate": 5}):
            answer = await stage.post("/redrives", {**order, "dry_run": False, "preview": token})
            assert answer.status_code == 409


async def test_many_letters_need_a_preview_and_named_ones_do_not() -> None:
    async with Stage() as stage:
        await stage.collect(3)

        many = await stage.post("/redrives", {**ALL, "dry_run": False})
        named = await stage.post("/redrives", {"letter_ids": ["letter-1"], "dry_run": False})

        assert (many.status_code, "dry run" in many.json()["detail"]) == (400, True)
        assert (named.status_code, named.json()["total"]) == (201, 1)


async def test_letters_are_named_by_incident_or_all() -> None:
    async with Stage() as stage:
        await stage.collect(2, fingerprint="f0")
        await stage.collect(3, prefix="other", fingerprint="f1", queue="mails")

        assert (await previewed(stage, incident_id="f1"))["total"] == 3
        assert (await previewed(stage, all=True))["total"] == 5
        assert (await begun(stage, all=True))["total"] == 5


async def test_the_answer_is_told_in_words() -> None:
    async with Stage() as stage:
        await stage.collect(3)
        made = await begun(stage, **ALL, canary=[1])

        await stage.while_consuming(stage.service.redriver.run(made["redrive_id"]), succeeds)
        shown = (await stage.ask(f"/redrives/{made['redrive_id']}")).json()

        assert shown["state"] == "done"
        assert shown["verdict"] == "Sent 1, it succeeded on version v2; sent 2: 3 resolved, 0 unconfirmed"
        assert shown["progress"] == [{"succeeded": 1}, {"succeeded": 2}]


async def test_a_redrive_is_paused_resumed_and_cancelled() -> None:
    async with Stage() as stage:
        await stage.collect(3)
        where = f"/redrives/{(await begun(stage))['redrive_id']}"

        paused = await stage.post(f"{where}/pause", {"why": "lunch"})
        resumed = await stage.post(f"{where}/resume")
        cancelled = await stage.post(f"{where}/cancel")
        again = await stage.post(f"{where}/resume")

        assert (paused.json()["state"], paused.json()["why"]) == ("paused", "lunch")
        assert resumed.json()["state"] == "running"
        assert (cancelled.json()["state"], cancelled.json()["why"]) == ("cancelled", "by local")
        assert (again.status_code, "has ended" in again.json()["detail"]) == (409, True)


async def test_redrives_are_listed_latest_first_and_page_by_page() -> None:
    async with Stage() as stage:
        await stage.collect(2)
        made = []
        for number in range(2):
            order = {"letter_ids": [f"letter-{number}"], "dry_run": False}
            made.append((await stage.post("/redrives", order)).json()["redrive_id"])
            stage.clock.advance("1s")

        first = await stage.ask("/redrives?limit=1")
        second = await stage.next_of(first)

        assert [one["redrive_id"] for one in (*first.json(), *second.json())] == [*reversed(made)]


async def test_what_was_searched_for_is_hidden_from_who_may_not_reveal() -> None:
    async with Stage() as stage:
        await stage.collect(1, user_id="ann@example.com", payload=b"hunter2")
        redrive = await begun(stage, filter={"user_id": "ann@example.com", "q": "hunter2"})
        viewer, operator = await stage.token(Role.VIEWER), await stage.token(Role.OPERATOR)

        for path in ("/redrives", f"/redrives/{redrive['redrive_id']}"):
            masked, whole = [await stage.ask(path, headers=one) for one in (viewer, operator)]
            assert '"user_id=***, text=***, state=open"' in masked.text, path
            assert '"user_id=ann@example.com, text=hunter2, state=open"' in whole.text, path


async def test_a_broker_that_is_away_is_a_remark_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away() -> None:
        raise BrokerUnavailable("it does not answer")

    async with Stage() as stage:
        await stage.collect(1, group="")
        monkeypatch.setattr(stage.broker, "queues", away)

        (remark,) = (await previewed(stage))["remarks"]

        assert remark == "the broker memory is away, letters wait until it is back: it does not answer"


async def test_a_redrive_of_nothing_is_a_conflict() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        await letters.discard(stage.desk, await stage.selection(letter_ids=["letter-0"]))

        answer = await stage.post("/redrives", {"letter_ids": ["letter-0"], "dry_run": False})

        assert (answer.status_code, "nothing to send back" in answer.json()["detail"]) == (409, True)


async def test_two_who_begin_the_same_preview_begin_one_redrive() -> None:
    async with Stage() as stage:
        await stage.collect(3)
        token = (await previewed(stage))["preview"]
        order = {**ALL, "dry_run": False, "preview": token}

        answers = await asyncio.gather(*(stage.post("/redrives", order) for _ in range(2)))
        (redrive_id,) = {answer.json()["redrive_id"] for answer in answers}
        await stage.while_consuming(stage.service.redriver.run(redrive_id), succeeds)

        assert sorted(stage.published) == ["letter-0:1", "letter-1:1", "letter-2:1"]


@pytest.mark.parametrize(
    ("order", "status"),
    [
        ({}, 400),
        ({"filter": {}}, 400),
        ({"filter": {"queue": "orders"}, "all": True}, 400),
        ({"letter_ids": ["a"], "incident_id": "b"}, 400),
        ({"letter_ids": ["nobody"]}, 404),
        ({"incident_id": "nobody"}, 404),
        ({**ALL, "report_within": "soon"}, 400),
        ({**ALL, "report_within": 0}, 400),
        ({**ALL, "report_within": "9999999d"}, 400),
        ({**ALL, "dry_run": False, "preview": "gibberish"}, 400),
        ({**ALL, "dry_run": False, "preview": "1.0" * 100}, 422),
        ({"filter": {"queu": "orders"}}, 422),
        ({"filter": {"queue": "a\x00b"}}, 422),
        ({"filter": {"state": ["lost"]}}, 422),
        ({"filter": {"from": "2030-01-01T00:00:00"}}, 422),
        ({"letter_ids": ["x"] * 1001}, 422),
        ({"letter_ids": "letter-0"}, 422),
        ({**ALL, "canary": [0]}, 422),
        ({**ALL, "canary": [1] * 21}, 422),
        ({**ALL, "rate": 0}, 422),
        ({**ALL, "rate": "NaN"}, 422),
        ({**ALL, "dry_run": "false"}, 422),
        ({"all": "yes"}, 422),
        ({**ALL, "to": "moon"}, 422),
        ({**ALL, "yes": True}, 422),
        ([], 422),
        (None, 422),
    ],
)
async def test_an_order_that_makes_no_sense_is_refused(order: Any, status: int) -> None:
    async with Stage() as stage:
        await stage.collect(1)

        answer = await stage.post("/redrives", order)

        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert await stage.verbs() == []


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"rate": ' + b"9" * 5000 + b"}", b"NaN"])
async def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    async with Stage() as stage:
        answer = await stage.http.post("/redrives", content=body, headers={"Content-Type": "application/json"})

        assert (answer.status_code // 100, answer.headers["content-type"]) == (4, "application/problem+json")


async def test_a_redrive_says_why_it_waits_and_only_while_it_does() -> None:
    async with Stage() as stage:
        await stage.collect(2)
        where = f"/redrives/{(await begun(stage))['redrive_id']}"
        planned = (await stage.ask(where)).json()["waiting"]
        running = asyncio.create_task(stage.service.redriver.run(where.rpartition("/")[2]))
        while not (said := (await stage.ask(where)).json()["waiting"]):
            stage.clock.advance("100ms")
        await stage.while_consuming(asyncio.wait_for(running, None), succeeds)
        done = (await stage.ask(where)).json()

        assert (planned, said) == ("", "no consumer is alive on this queue")
        assert (done["state"], done["waiting"]) == ("done", "")


async def test_a_viewer_may_look_and_not_even_plan() -> None:
    async with Stage(needs_token=True) as stage:
        await stage.collect(1)
        viewer, operator = await stage.token(Role.VIEWER), await stage.token(Role.OPERATOR)

        assert (await stage.post("/redrives", ALL, headers=viewer)).status_code == 403
        assert (await stage.post("/redrives", ALL, headers=operator)).status_code == 200
        assert (await stage.ask("/redrives", headers=viewer)).status_code == 200
        assert (await stage.ask("/redrives")).status_code == 401
