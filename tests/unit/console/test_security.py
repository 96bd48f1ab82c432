"""What holds for every page: who may what, what a browser may do with an answer, and that strangers' text is text."""

import re
from collections.abc import Sequence
from http import HTTPStatus

import pytest

from redrive.brokers.memory import MemoryBroker
from redrive.console.pages import ROUTES
from redrive.core.access import Role
from redrive.core.audit import AuditRecord
from redrive.core.errors import StoreError, StoreUnavailable
from redrive.core.ports import Alive, Depth
from redrive.core.stored import Page
from redrive.stores.memory import MemoryStore
from redrive.triage import letters
from tests.unit.console.seen import Seen, read
from tests.unit.console.stage import ADDRESS, FROM_OWN_PAGE, ConsoleStage
from tests.unit.core.letters import AT

VIEWER, OPERATOR, ADMIN = Role.VIEWER, Role.OPERATOR, Role.ADMIN
LEAST = {
    "GET /": VIEWER,
    "POST /queues/pause": OPERATOR,
    "POST /queues/resume": OPERATOR,
    "POST /queues/release": OPERATOR,
    "GET /incidents": VIEWER,
    "GET /incidents/{incident_id}": VIEWER,
    "POST /incidents/{incident_id}/note": OPERATOR,
    "POST /incidents/{incident_id}/assign": OPERATOR,
    "POST /incidents/{incident_id}/mute": OPERATOR,
    "POST /incidents/{incident_id}/resolve": OPERATOR,
    "POST /incidents/{incident_id}/reopen": OPERATOR,
    "GET /letters": VIEWER,
    "GET /letters/export": VIEWER,
    "POST /letters/export": OPERATOR,
    "GET /letters/{letter_id}": VIEWER,
    "GET /letters/{letter_id}/edit": VIEWER,
    "GET /letters/{letter_id}/edit/begin": VIEWER,
    "GET /letters/{letter_id}/edit/check": VIEWER,
    "GET /letters/{letter_id}/reveal": VIEWER,
    "GET /letters/{letter_id}/payload": VIEWER,
    "POST /letters/{letter_id}/edit": OPERATOR,
    "POST /letters/{letter_id}/edit/begin": OPERATOR,
    "POST /letters/{letter_id}/edit/check": OPERATOR,
    "POST /letters/{letter_id}/reveal": OPERATOR,
    "POST /letters/{letter_id}/payload": OPERATOR,
    "POST /letters/{letter_id}/note": OPERATOR,
    "POST /letters/{letter_id}/outcome": OPERATOR,
    "GET /redrives": VIEWER,
    "GET /redrives/new": OPERATOR,
    "POST /redrives": OPERATOR,
    "GET /redrives/{redrive_id}": VIEWER,
    "POST /redrives/{redrive_id}/pause": OPERATOR,
    "POST /redrives/{redrive_id}/resume": OPERATOR,
    "POST /redrives/{redrive_id}/cancel": OPERATOR,
    "GET /discard": OPERATOR,
    "POST /discard": OPERATOR,
    "GET /gateways": VIEWER,
    "GET /audit": VIEWER,
    "GET /settings": VIEWER,
    "POST /settings/alerts/test": ADMIN,
    "POST /settings/tokens": ADMIN,
    "POST /settings/tokens/{token_id}/revoke": ADMIN,
    "GET /settings/purge": ADMIN,
    "POST /settings/purge": ADMIN,
    "GET /sign-in": None,
    "POST /sign-in": None,
    "POST /sign-out": None,
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
ACTS = [door.removeprefix("POST ") for door in LEAST if door.startswith("POST ")]
PAGES = (
    "/",
    "/incidents",
    "/letters",
    "/redrives",
    "/gateways",
    "/audit",
    "/settings",
    "/settings/purge",
    "/sign-in",
    "/nosuch",
)
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    '"><script>alert(1)</script>',
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202egnp.exe",
    "a/b%2Fc?d=e&f#g",
    "half a character: \ud83d",
    "new\nline\r\nSet-Cookie: a=b",
    "x" * 10_000,
)


def test_the_table_has_every_door() -> None:
    doors = {f"{method} {route.path}" for route in ROUTES for method in (route.methods or set()) - {"HEAD"}}

    assert doors == set(LEAST)


@pytest.mark.parametrize("role", [None, *Role])
async def test_a_role_opens_the_doors_that_the_table_says_and_no_other(role: Role | None) -> None:
    async with ConsoleStage(needs_token=True) as stage:
        if role is not None:
            await stage.as_(role)
        opened = {}
        for door, least in LEAST.items():
            method, path = re.sub(r"[{}]", "", door).split(" ")
            answer = await stage.http.request(method, path, headers=FROM_OWN_PAGE if method == "POST" else {})
            assert answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, (door, answer.text)
            if role is None and least is not None:
                sent_away = HTTPStatus.SEE_OTHER if method == "GET" else HTTPStatus.UNAUTHORIZED
                assert answer.status_code == sent_away, door
                opened[door] = False
            else:
                opened[door] = answer.status_code != HTTPStatus.FORBIDDEN

    assert opened == {door: _may(role, least) for door, least in LEAST.items()}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8801"},
        {"Origin": "http://127.0.0.1:8800.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": ADDRESS, "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Referer": f"{ADDRESS}/settings"},
    ],
)
async def test_no_other_page_can_ask_for_a_change(headers: dict[str, str]) -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.as_(ADMIN)
        before = await stage.verbs()
        for path in ACTS:
            answer = await stage.http.post(re.sub(r"[{}]", "", path), headers=headers)
            assert answer.status_code == HTTPStatus.FORBIDDEN, path

        assert await stage.verbs() == before


@pytest.mark.parametrize("headers", [{"Origin": ADDRESS}, {"Sec-Fetch-Site": "same-origin"}, FROM_OWN_PAGE])
async def test_a_page_of_our_own_can(headers: dict[str, str]) -> None:
    async with ConsoleStage() as stage:
        answer = await stage.http.post("/settings/tokens", data={"name": "ci", "role": "viewer"}, headers=headers)

    assert answer.status_code == HTTPStatus.OK


async def test_a_change_is_never_made_by_a_link() -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        for path in ACTS:
            await stage.get(path.replace("{letter_id}", "letter-0").replace("{", "").replace("}", ""))

        assert await stage.verbs() == []


@pytest.mark.parametrize("path", PAGES)
async def test_a_browser_does_no_more_with_a_page_than_is_meant(path: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1)
        answer = await stage.get(path)

    assert answer.headers["content-security-policy"] == POLICY
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"  # without any, a browser hides the origin of a form
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    for element in read(answer.text).root.walk():
        assert element.tag != "style"
        assert not [name for name in element.attributes if name == "style" or name.startswith("on")]
        if element.tag == "script":
            assert element.attributes["src"].startswith("/static/")
            assert not element.content


async def test_files_may_be_kept_and_change_their_address_when_they_change() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        page = read((await stage.get("/sign-in")).text)
        (script,) = [one.attributes["src"] for one in page.root.all("script")]
        answer = await stage.get(script)
        outside = await stage.get("/static/../app.py")
        folder = await stage.get("/static/")

    assert re.fullmatch(r"/static/console\.js\?[0-9a-f]{12}", script)
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert {outside.status_code, folder.status_code} == {HTTPStatus.NOT_FOUND}


async def test_without_tokens_only_this_machine_is_answered_and_no_page_of_somebody_else() -> None:
    async with ConsoleStage() as stage:
        rebound = await stage.get("/", headers={"Host": "evil.example"})
        framed = await stage.get("/", headers={"Sec-Fetch-Site": "cross-site"})
        proxied = await stage.get("/", headers={"X-Forwarded-For": "10.0.0.1"})

    assert {one.status_code for one in (rebound, framed, proxied)} == {HTTPStatus.FORBIDDEN}


async def test_a_mistake_of_ours_shows_nothing_of_the_inside() -> None:
    class Broken(MemoryStore):
        async def records(
            self, *, limit: int = 50, after: str | None = None, letter_id: str | None = None
        ) -> Page[AuditRecord]:
            raise RuntimeError(f"a secret path {limit} {after} {letter_id}")

    async with ConsoleStage(store=Broken) as stage:
        answer = await stage.get("/audit")

    assert answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "secret path" not in answer.text
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "error", [StoreUnavailable("postgresql://app:hunter2@db"), StoreError("postgresql://app:hunter2@db")]
)
async def test_a_store_that_is_away_is_said_with_when_to_come_back_and_without_its_password(error: StoreError) -> None:
    class Away(MemoryStore):
        async def records(
            self, *, limit: int = 50, after: str | None = None, letter_id: str | None = None
        ) -> Page[AuditRecord]:
            raise error

    async with ConsoleStage(store=Away) as stage:
        answer = await stage.get("/audit")
        part = await stage.get("/audit", headers={"X-Fragment": "live"})

    assert answer.status_code == part.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert answer.headers["retry-after"]
    assert "hunter2" not in answer.text + part.text
    assert "Nothing is lost" in answer.text


async def test_a_part_that_a_page_does_not_have_is_not_found() -> None:
    async with ConsoleStage() as stage:
        for name in ("nosuch", "__init__", "blocks", "<b>"):
            assert (await stage.get("/", headers={"X-Fragment": name})).status_code == HTTPStatus.NOT_FOUND


async def test_a_form_that_is_none_is_a_mistake_of_who_sent_it() -> None:
    async with ConsoleStage() as stage:
        for body in (b"\xff\xfe=1", b"&".join(b"a=1" for _ in range(5000)), b"name=%FF"):
            answer = await stage.http.post("/settings/tokens", content=body, headers=FROM_OWN_PAGE)
            assert answer.status_code == HTTPStatus.BAD_REQUEST, body[:20]
        large = await stage.http.post("/settings/tokens", content=b"a" * 9_000_000, headers=FROM_OWN_PAGE)

    assert large.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


@pytest.mark.parametrize("text", HOSTILE)
async def test_names_from_strangers_are_text_on_every_page(text: str) -> None:
    async with ConsoleStage() as stage:
        hostile = dict.fromkeys(("queue", "group", "error_type", "error_message", "app_version", "handler"), text)
        await stage.collect(2, **hostile, fingerprint="abc", user_id=text, tenant_id=text, error_code=text)
        await letters.note(stage.desk, "letter-0", text)
        pages = ["/", "/incidents", "/incidents/abc", "/letters", "/letters/letter-0", "/redrives", "/audit"]
        for path in pages:
            answer = await stage.get(path)
            assert answer.status_code == HTTPStatus.OK, (path, answer.text[:500])
            assert len(answer.content) < 150_000, path
            assert _is_harmless(read(answer.text)), path
            assert "set-cookie" not in answer.headers


class Strange(MemoryBroker):
    """A broker whose queues somebody else has named."""

    name_of_all = ""

    async def queues(self) -> Sequence[tuple[str, str]]:
        return [(self.name_of_all, self.name_of_all)]

    async def depth(self, queue: str, *, group: str) -> Depth:
        assert queue == group == self.name_of_all
        return Depth(waiting=1, paused=self.name_of_all)

    async def alive(self, queue: str, *, group: str) -> Sequence[Alive]:
        assert queue == group == self.name_of_all
        return [Alive(queue, queue, 1, queue, AT, queue)]


@pytest.mark.parametrize("text", HOSTILE)
async def test_names_of_queues_groups_and_versions_are_text_and_their_links_lead_somewhere(text: str) -> None:
    async with ConsoleStage() as stage:
        strange = Strange(clock=stage.clock)
        strange.name_of_all = text
        stage.brokers["memory"] = strange
        answer = await stage.get("/")
        assert answer.status_code == HTTPStatus.OK, answer.text
        seen = read(answer.text)
        assert _is_harmless(seen)
        for _, href in seen.links:
            if href.startswith("/letters?queue"):
                followed = await stage.get(href)
                assert followed.status_code in (HTTPStatus.OK, HTTPStatus.BAD_REQUEST)  # 10,000 letters are no name


@pytest.mark.parametrize("letter_id", [text for text in HOSTILE if "\ud83d" not in text and len(text) < 100])
async def test_a_letter_with_any_id_is_found_by_its_link(letter_id: str) -> None:
    async with ConsoleStage() as stage:
        await stage.collect(1, letter_id=letter_id)
        await letters.note(stage.desk, letter_id, "here")
        href = next(href for _, href in (await stage.see("/audit")).links if href.startswith("/letters/"))
        answer = await stage.get(href)

    assert answer.status_code == HTTPStatus.OK
    assert "here" in answer.text


def _is_harmless(seen: Seen) -> bool:
    """Whether nothing runs that a stranger wrote, and nothing that is read moves or reorders other text."""
    made = [one for one in seen.root.all("img", "script", "svg") if one.attributes.get("src") == "x"]
    scripts = [one for one in seen.root.all("script") if one.content or "src" not in one.attributes]
    read_by_people = seen.without("textarea").text  # which holds what was written, to be edited
    return not made and not scripts and not re.search("[\x00-\x08\x0e-\x1b\x7f\u202e]", read_by_people)


def _may(role: Role | None, least: Role | None) -> bool:
    return least is None or (role is not None and role.includes(least))
