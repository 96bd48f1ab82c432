from datetime import timedelta
from http import HTTPStatus

import pytest

from redrive.config import BrokerSettings, RetentionSettings, Settings
from redrive.console import session
from redrive.core.access import Role
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.service import open_service
from redrive.triage import access, letters
from redrive.triage.retention import Rule
from tests.unit.console.seen import read
from tests.unit.console.stage import ConsoleStage
from tests.unit.triage.bench import begin
from tests.unit.triage.notifying import Hearing


async def test_the_page_says_who_you_are_and_what_you_may() -> None:
    async with ConsoleStage() as stage:
        local = await stage.see("/settings")
        await stage.as_(Role.VIEWER)
        viewer = await stage.see("/settings")

    assert "Role admin" in local.text
    assert "whoever reaches this service from this machine is its admin" in local.text
    assert "Name a viewer" in viewer.text
    assert "You may read " in viewer.text


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_who_is_no_admin_sees_no_tokens_and_is_offered_no_purge(role: Role) -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await access.issue(stage.desk, "somebody else", role=Role.ADMIN)
        await stage.as_(role)
        seen = await stage.see("/settings")

    assert "somebody else" not in seen.text
    assert "Tokens" not in seen.headings
    assert not seen.offers("/settings/tokens")
    assert not any("purge" in href for _, href in seen.links)


async def test_a_token_is_issued_and_its_secret_is_on_that_answer_only() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.as_(Role.ADMIN)
        form = (await stage.see("/settings")).form("/settings/tokens")
        answer = await stage.post(form.action, {"name": "ci", "role": "operator", "expires_in": "90d"})
        again = await stage.see("/settings")
        (issued,) = [one for one in await access.tokens(stage.desk) if one.name == "ci"]

    assert answer.status_code == HTTPStatus.OK
    secret = answer.text.partition('<pre id="secret"')[2].partition(">")[2].partition("<")[0]
    assert secret.startswith("rdt_")
    caller = await access.recognise(stage.store, secret, stage.clock.now())
    assert caller is not None
    assert (caller.name, caller.role) == ("ci", Role.OPERATOR)
    assert "rdt_" not in again.html
    assert issued.expires_at == stage.clock.now() + timedelta(days=90)
    assert issued.created_by == "a admin"
    assert any(cells[0] == "ci" for cells in again.rows)
    assert answer.headers["cache-control"] == "no-store"


async def test_a_token_may_be_for_ever() -> None:
    async with ConsoleStage() as stage:
        await stage.post("/settings/tokens", {"name": "ci", "role": "viewer", "expires_in": ""})
        (issued,) = await access.tokens(stage.desk)
        seen = await stage.see("/settings")

    assert issued.expires_at is None
    assert seen.rows[0][3] == "never"


async def test_the_first_token_is_an_admins_unless_told_and_its_consequence_is_said() -> None:
    async with ConsoleStage() as stage:
        form = (await stage.see("/settings")).form("/settings/tokens")
        assert form.fields["role"] == "admin"
        answer = await stage.post(form.action, {**form.fields, "name": "sam"})

    assert "from now on this service asks everybody for a token" in answer.text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": ""}, "name: expected 1 to 64 letters"),
        ({"name": "<b>"}, "name: expected 1 to 64 letters"),
        ({"role": "root"}, "role: expected one of viewer, operator, admin"),
        ({"role": ""}, "role: expected one of viewer, operator, admin"),
        ({"expires_in": "soon"}, "expires: expected seconds"),
        ({"expires_in": "0s"}, "expires: expected more than zero"),
    ],
)
async def test_a_mistake_is_told_at_the_form_and_what_was_typed_is_kept(wrong: dict[str, str], said: str) -> None:
    async with ConsoleStage() as stage:
        answer = await stage.post("/settings/tokens", {"name": "ci", "role": "viewer", "expires_in": "1d", **wrong})
        issued = await access.tokens(stage.desk)

    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert said in answer.text
    assert not issued


async def test_a_token_is_revoked_by_a_form_that_names_it_and_signs_its_bearer_out() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        other = await access.issue(stage.desk, "ci", role=Role.VIEWER)
        await stage.as_(Role.ADMIN)
        form = (await stage.see("/settings")).form(f"/settings/tokens/{other.token.token_id}/revoke")
        assert form.buttons == ("Revoke the token of ci",)
        seen = await stage.follow(await stage.post(form.action, form.fields))
        stage.http.cookies.set(session.NAME, other.secret)
        sent_away = await stage.get("/")

    assert "The token of ci is revoked" in seen.text
    assert "revoked now" in next(cells[3] for cells in seen.rows if cells[0] == "ci")
    assert not seen.offers(form.action)
    assert sent_away.status_code == HTTPStatus.SEE_OTHER


async def test_a_token_that_is_not_there_cannot_be_revoked() -> None:
    async with ConsoleStage() as stage:
        answer = await stage.post("/settings/tokens/nosuch/revoke")

    assert answer.status_code == HTTPStatus.NOT_FOUND


async def test_a_token_that_has_expired_says_so_and_is_not_offered_to_be_revoked() -> None:
    async with ConsoleStage() as stage:
        await access.issue(stage.desk, "ci", role=Role.VIEWER, expires_in="1h")
        stage.clock.advance("2h")
        seen = await stage.see("/settings")

    assert seen.rows[0][3] == "expired 1h ago"
    assert not any("revoke" in form.action for form in seen.forms)


async def test_rules_of_retention_are_shown_as_configured() -> None:
    rules = [Rule(older_than=timedelta(days=90), state=LetterState.RESOLVED, queue="orders")]
    async with ConsoleStage(retention=[*rules, Rule(older_than=timedelta(days=365))]) as stage:
        await stage.as_(Role.VIEWER)
        seen = await stage.see("/settings")
    async with ConsoleStage() as stage:
        without = await stage.see("/settings")

    assert seen.rows == [["resolved", "orders", "90d"], ["any but redriving", "any", "365d"]]
    assert "letters are kept for ever" in without.text


async def test_the_service_knows_the_rules_of_its_settings() -> None:
    rule = RetentionSettings(older_than=timedelta(days=90), state="resolved")
    settings = Settings(brokers=(BrokerSettings(url="memory://"),), store="memory://", retention=(rule,))
    async with open_service(settings) as service:
        assert service.retention == [Rule(older_than=timedelta(days=90), state=LetterState.RESOLVED)]


async def test_a_purge_is_counted_first_and_removes_what_was_counted() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3, prefix="old")
        stage.clock.advance("48h")
        await stage.collect(2, prefix="new")
        empty = await stage.see("/settings/purge")
        assert not empty.offers("/settings/purge") or "would go" not in empty.text
        seen = await stage.see("/settings/purge?older_than=1d&queue=orders&state=")
        assert "3 letters would go" in seen.headings
        form = next(one for one in seen.forms if one.method == "post" and one.action == "/settings/purge")
        assert form.buttons == ("Remove 3 for good",)
        said = await stage.follow(await stage.post(form.action, form.fields))
        left = await stage.ids()

    assert "3 letters removed for good" in said.text
    assert left == ["new-0", "new-1"]
    assert "letters.purge" in await stage.verbs()


async def test_what_becomes_old_between_the_preview_and_the_act_is_kept() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3, prefix="old")
        stage.clock.advance("1h")
        await stage.collect(2, prefix="new")
        stage.clock.advance("30m")
        seen = await stage.see("/settings/purge?older_than=1h")
        form = next(one for one in seen.forms if one.method == "post" and one.action == "/settings/purge")
        stage.clock.advance("10h")
        await stage.follow(await stage.post(form.action, form.fields))
        left = await stage.ids()

    assert left == ["new-0", "new-1"]


async def test_a_purge_of_other_letters_than_were_counted_removes_nothing() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        stage.clock.advance("48h")
        seen = await stage.see("/settings/purge?older_than=1d")
        form = next(one for one in seen.forms if one.method == "post" and one.action == "/settings/purge")
        await stage.collect(1, prefix="late", failed_at=stage.clock.now() - timedelta(hours=30))
        answer = await stage.post(form.action, form.fields)
        left = await stage.ids()

    assert answer.status_code == HTTPStatus.CONFLICT
    assert "look again" in answer.text
    assert len(left) == 4


async def test_a_purge_of_as_many_others_as_were_counted_removes_nothing() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        stage.clock.advance("48h")
        seen = await stage.see("/settings/purge?older_than=1d&state=discarded&state=open")
        form = next(one for one in seen.forms if one.method == "post" and one.action == "/settings/purge")
        await letters.discard(stage.desk, await stage.selection(letter_ids=["letter-1"]))
        answer = await stage.post(form.action, form.fields)
        left = await stage.ids()

    assert answer.status_code == HTTPStatus.CONFLICT
    assert len(left) == 3


async def test_what_comes_and_is_not_old_does_not_hold_up_a_purge() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        stage.clock.advance("48h")
        seen = await stage.see("/settings/purge?older_than=1d")
        form = next(one for one in seen.forms if one.method == "post" and one.action == "/settings/purge")
        await stage.collect(2, prefix="new")
        await stage.follow(await stage.post(form.action, form.fields))
        left = await stage.ids()

    assert left == ["new-0", "new-1"]


async def test_letters_that_are_out_are_neither_counted_nor_removed() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(3)
        await begin(stage)
        (redrive,) = await stage.store.unfinished()
        await stage.store.claim(redrive.redrive_id, step=0, limit=2)
        stage.clock.advance("48h")
        seen = await stage.see("/settings/purge?older_than=1d")
        refused = await stage.get("/settings/purge?older_than=1d&state=redriving")
        form = next(one for one in seen.forms if one.method == "post" and one.action == "/settings/purge")
        await stage.post(form.action, form.fields)
        left = await stage.ids(Query(states=(LetterState.REDRIVING,)))

    assert "1 letter would go" in seen.headings
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert len(left) == 2


@pytest.mark.parametrize(
    "asked", ["older_than=", "older_than=soon", "older_than=0", "older_than=1d&from=yesterday", "queue=orders"]
)
async def test_a_purge_that_nobody_can_have_meant_is_refused_at_the_form(asked: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        answer = await stage.get(f"/settings/purge?{asked}")

    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "Remove 1" not in answer.text


async def test_a_purge_without_a_preview_removes_nothing() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        stage.clock.advance("1h")
        forms: list[dict[str, str]] = [{}, {"before": "2026-13-01"}, {"before": stage.clock.now().isoformat()}]
        statuses = [(await stage.post("/settings/purge", form)).status_code for form in forms]
        left = await stage.ids()

    assert statuses == [HTTPStatus.BAD_REQUEST, HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT]
    assert len(left) == 1


async def test_nothing_to_remove_is_said_and_no_button_is_offered() -> None:
    async with ConsoleStage() as stage:
        seen = await stage.see("/settings/purge?older_than=1d")

    assert "there is nothing to remove" in seen.text
    assert not any(form.method == "post" and form.action == "/settings/purge" for form in seen.forms)


async def test_who_is_told_of_alerts_is_shown_and_sent_a_test_which_says_what_came_of_it() -> None:
    hears = Hearing("webhook", "https://chat.example/***")
    deaf = Hearing("alertmanager", "http://am:9093", why="am answered 500: <b>no</b>")
    async with ConsoleStage(notifiers=[hears, deaf]) as stage:
        before = await stage.see("/settings")
        answer = await stage.post(before.form("/settings/alerts/test").action)
        after = read(answer.text)
        verbs = await stage.verbs()

    assert ["webhook", "https://chat.example/***", "every 4h"] in [cells[:3] for cells in before.rows]
    assert answer.status_code == HTTPStatus.OK
    assert [cells[3] for cells in after.rows if cells[0] in ("webhook", "alertmanager")] == [
        "taken",
        "not taken am answered 500: <b>no</b>",
    ]
    assert "<b>no" not in answer.text
    assert [alert.rule for alert in hears.heard] == ["test"]
    assert verbs == ["alerts.test"]


async def test_where_nobody_is_told_of_alerts_the_page_says_how_to_change_that() -> None:
    async with ConsoleStage() as stage:
        seen = await stage.see("/settings")

    assert "Nobody is told of alerts" in seen.text
    assert not seen.offers("/settings/alerts/test")


async def test_who_is_no_admin_is_not_offered_the_test() -> None:
    async with ConsoleStage(needs_token=True, notifiers=[Hearing("webhook", "x")]) as stage:
        await stage.as_(Role.OPERATOR)
        seen = await stage.see("/settings")

    assert "webhook" in seen.text
    assert not seen.offers("/settings/alerts/test")
