import pytest

from redrive.core.access import Role
from tests.unit.api.stage import Stage


async def test_the_audit_is_read_latest_first_and_page_by_page() -> None:
    async with Stage() as stage:
        await stage.collect(1, fingerprint="f0")
        for verb in ("mute", "resolve", "reopen"):
            await stage.post(f"/incidents/f0/{verb}")

        first = await stage.ask("/audit?limit=2")
        second = await stage.next_of(first)

        assert [one["verb"] for one in first.json()] == ["incidents.reopen", "incidents.resolve"]
        assert [(one["verb"], one["who"]) for one in second.json()] == [("incidents.mute", "local")]
        assert "link" not in second.headers


async def test_the_audit_of_one_letter_has_only_what_was_done_to_it() -> None:
    async with Stage() as stage:
        await stage.collect(2)
        for letter in ("letter-0", "letter-1"):
            await stage.store.note(letter, "x", act=stage.desk.act("letters.note"))

        found = (await stage.ask("/audit", params={"letter_id": "letter-1"})).json()

        assert [(one["verb"], one["letter_id"]) for one in found] == [("letters.note", "letter-1")]


async def test_the_chain_of_the_audit_is_verified() -> None:
    async with Stage() as stage:
        await stage.collect(1, fingerprint="f0")
        await stage.post("/incidents/f0/mute")

        assert (await stage.ask("/audit/verify")).json() == {"holds": True, "broken": None}


async def test_what_was_searched_for_is_hidden_from_who_may_not_reveal() -> None:
    async with Stage(needs_token=True) as stage:
        await stage.collect(1, user_id="ann@example.com", payload=b"hunter2, state=x")
        viewer, operator = await stage.token(Role.VIEWER), await stage.token(Role.OPERATOR)
        chosen = {"user_id": "ann@example.com", "q": "hunter2, state=x"}
        await stage.post("/letters/discard", {"filter": chosen}, headers=operator)

        masked, whole = [(await stage.ask("/audit", headers=one)).json() for one in (viewer, operator)]

        assert "user_id=***, text=***, state=open|parked" in [one["selection"] for one in masked]
        assert "hunter2" not in str(masked)
        assert "user_id=ann@example.com, text=hunter2, state=x, state=open|parked" in str(whole)


async def test_what_people_wrote_is_masked_for_who_may_not_reveal() -> None:
    async with Stage(needs_token=True) as stage:
        await stage.collect(1)
        viewer, operator = await stage.token(Role.VIEWER), await stage.token(Role.OPERATOR)
        await stage.post("/letters/letter-0/note", {"text": "ask ann@example.com"}, headers=operator)

        masked, whole = [
            [
                str((await stage.ask("/audit", headers=one)).json()),
                str((await stage.ask("/dlq/messages/letter-0", headers=one)).json()["history"]),
            ]
            for one in (viewer, operator)
        ]

        assert ["ann@example.com" in text for text in masked] == [False, False]
        assert ["ask ann@example.com" in text for text in whole] == [True, True]


@pytest.mark.parametrize(
    ("path", "status"),
    [("/audit?after=x", 400), ("/audit?letter_id=", 422), ("/audit?limit=-1", 422), ("/audit?letter=x", 422)],
)
async def test_parameters_that_make_no_sense_are_refused(path: str, status: int) -> None:
    async with Stage() as stage:
        assert (await stage.ask(path)).status_code == status
