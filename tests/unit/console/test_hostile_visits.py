"""What somebody who wishes it ill has tried: strange cookies, parts of pages, endless texts, ids that are code."""

import ast
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import quote

import pytest

from redrive.console import clip, session
from redrive.core.access import Role
from redrive.core.privacy import PrivacyFilter
from redrive.door.limits import RateLimit
from redrive.triage import access, masking
from redrive.triage.export import pytest_file
from tests.unit.console.seen import read
from tests.unit.console.stage import ConsoleStage

LONG = 200_000  # characters, of which a list shows a few hundred


@pytest.mark.parametrize(
    "cookies",
    [
        'prefs={{"a": 1}}; {}',
        "a b=c; {}",
        "flag; {}",
        'x="open; {}',
        "who=\xe9; {}",
        "a@b=1; {}",
        "{}; a b=c",
        "=;{};;",
    ],
)
async def test_cookies_of_other_apps_on_this_host_sign_nobody_out(cookies: str) -> None:
    async with ConsoleStage(needs_token=True) as stage:
        secret = (await access.issue(stage.desk, "sam", role=Role.VIEWER)).secret
        given = cookies.format(f"{session.NAME}={secret}").encode("latin-1")
        answer = await stage.get("/settings", headers={"Cookie": given})

    assert answer.status_code == HTTPStatus.OK


async def test_of_two_sessions_the_one_of_the_nearest_path_counts() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        secret = (await access.issue(stage.desk, "sam", role=Role.VIEWER)).secret
        cookie = f"{session.NAME}={secret}; {session.NAME}=rdt_{43 * 'x'}"
        answer = await stage.get("/settings", headers={"Cookie": cookie})

    assert answer.status_code == HTTPStatus.OK


async def test_a_guess_gets_no_rate_of_its_own() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        guess = {"Authorization": "Bearer guessed"}
        await stage.get("/", headers=guess)
        await stage.get("/", headers=guess)
        limit = _rate_limit(stage)

    assert len(limit._buckets) == 1  # noqa: SLF001 - that of the address


@pytest.mark.parametrize("part", ["main", "title"])
async def test_a_script_is_given_the_parts_that_stay_fresh_and_no_other(part: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        (row,) = (await stage.store.incidents(limit=1)).rows
        paths = ["/", "/letters", "/letters/letter-0", f"/incidents/{row.incident_id}", "/settings", "/audit"]
        answers = {path: await stage.get(path, headers={"X-Fragment": part}) for path in paths}

    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(paths, HTTPStatus.NOT_FOUND)


async def test_lists_mask_no_more_of_a_text_than_they_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[int] = []

    class Counting(PrivacyFilter):
        def text(self, text: str) -> str:
            masked.append(len(text))
            return super().text(text)

    monkeypatch.setattr(masking, "_FILTER", Counting(personal=True))
    async with ConsoleStage() as stage:
        await stage.collect(1, error_message="x" * LONG, error_type="y" * LONG, user_id="z" * LONG)
        (row,) = (await stage.store.incidents(limit=1)).rows
        for path in ("/", "/incidents", "/letters", f"/incidents/{row.incident_id}"):
            await stage.see(path)

    assert masked
    assert max(masked) < LONG / 2


def test_what_is_shown_of_a_long_text_is_masked_and_says_that_it_goes_on() -> None:
    shown = clip.masked_line("mail bob@secret.example " * 1000, 300)

    assert "secret.example" not in shown
    assert shown.endswith(clip.ELLIPSIS)
    assert clip.masked_line("short") == "short"


async def test_a_secret_at_the_end_of_what_a_row_shows_is_not_cut_in_two() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, error_message="x " * 110 + "bob@secret.example" + " y" * LONG)
        seen = await stage.see("/letters")

    assert "bob" not in seen.text


@pytest.mark.parametrize(
    "letter_id", ['x"""; __import__("os").system("id"); """', "x\\", "x\\N{BULLET}", "\u00b2\u00b3", "a\n1", 'x"']
)
async def test_no_id_of_a_letter_is_code_in_the_test_that_is_made_of_it(letter_id: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, letter_id=letter_id)
        text = pytest_file(await stage.stored(letter_id), "shop:app")

    first, *rest = ast.parse(text).body
    assert isinstance(first, ast.Expr)
    assert not [one for one in rest if isinstance(one, ast.Expr)]


async def test_a_command_to_copy_from_the_editor_takes_any_id_as_one_word() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, letter_id="$(touch x)", payload=b"x" * 100_000)
        answer = await stage.post(f"/letters/{quote(quote('$(touch x)'))}/edit/begin")

    assert "redrive letters edit '$(touch x)' --body @FILE" in read(answer.text).text


@pytest.mark.parametrize("letter_id", ["a/b", "a%3Fb", "50%", "a?b#c"])
async def test_signing_in_leads_back_to_a_letter_with_any_id(letter_id: str) -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.collect(1, letter_id=letter_id)
        secret = (await access.issue(stage.desk, "sam", role=Role.VIEWER)).secret
        sent = await stage.get(f"/letters/{quote(quote(letter_id, safe=''))}?view=text")
        form = (await stage.see(sent.headers["location"])).form("/sign-in")
        answer = await stage.post(form.action, {**form.fields, "token": secret})

        assert letter_id in (await stage.follow(answer)).text


async def test_who_is_signed_in_and_follows_a_link_from_elsewhere_can_go_on() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        elsewhere = {"Sec-Fetch-Site": "cross-site"}
        answer = await stage.get("/sign-in?next=/letters%3Fq%3Da", headers=elsewhere)
        led_away = await stage.get("/sign-in?next=//evil.example", headers=elsewhere)
        usual = await stage.get("/sign-in?next=/letters")

    assert read(answer.text).link("go on") == "/letters?q=a"
    assert read(led_away.text).link("go on") == "/"
    assert "go on" not in usual.text


def _rate_limit(stage: ConsoleStage) -> RateLimit:
    return next(one for one in _layers(stage.app.middleware_stack) if isinstance(one, RateLimit))


def _layers(app: object) -> Iterator[object]:
    while app is not None:
        yield app
        app = getattr(app, "app", None) or getattr(app, "_app", None)
