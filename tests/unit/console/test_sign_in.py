from http import HTTPStatus
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from redrive.console import session
from redrive.core.access import Role, Token
from redrive.core.errors import StoreUnavailable
from redrive.stores.memory import MemoryStore
from redrive.triage import access
from tests.unit.console.seen import read
from tests.unit.console.stage import FROM_OWN_PAGE, ConsoleStage


async def secret_of(stage: ConsoleStage, role: Role = Role.VIEWER) -> str:
    return (await access.issue(stage.desk, "sam", role=role)).secret


async def test_who_is_not_known_is_asked_to_sign_in_and_comes_back_to_where_they_were() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        sent = await stage.get("/audit?letter_id=a%26b")
        assert sent.status_code == HTTPStatus.SEE_OTHER
        form = (await stage.see(sent.headers["location"])).form("/sign-in")
        answer = await stage.post(form.action, {**form.fields, "token": await secret_of(stage)})
        assert answer.headers["location"] == "/audit?letter_id=a%26b"
        assert "sam" in (await stage.follow(answer)).text


async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        secret = await secret_of(stage)
        answer = await stage.post("/sign-in", {"token": f"  {secret}\n"})

    cookie = SimpleCookie(answer.headers["set-cookie"])[session.NAME]
    assert cookie.value == secret
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]) == (True, "strict", "/", "")
    assert int(cookie["max-age"]) == session.LASTS
    assert not cookie["secure"]  # over http, where a browser would drop it
    assert secret not in answer.headers["location"]


async def test_over_https_the_cookie_is_never_sent_in_the_clear() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        headers = {"Origin": "https://127.0.0.1:8800"}
        answer = await stage.post("https://127.0.0.1:8800/sign-in", {"token": await secret_of(stage)}, headers=headers)

    assert SimpleCookie(answer.headers["set-cookie"])[session.NAME]["secure"]


@pytest.mark.parametrize("token", ["", "nonsense", "rdt_" + 43 * "x", "rdt_" + 43 * "é", "x" * 100_000])
async def test_a_token_that_opens_nothing_is_refused_without_saying_why(token: str) -> None:
    async with ConsoleStage(needs_token=True) as stage:
        answer = await stage.post("/sign-in", {"token": token, "next": "/audit"})

    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert "set-cookie" not in answer.headers
    seen = read(answer.text)
    assert "This token opens nothing" in seen.text
    assert seen.form("/sign-in").fields == {"token": "", "next": "/audit"}


async def test_a_token_that_has_expired_or_was_revoked_signs_nobody_in_and_whoever_is_in_out() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        short = await access.issue(stage.desk, "short", role=Role.VIEWER, expires_in="1h")
        await stage.post("/sign-in", {"token": short.secret})
        assert (await stage.get("/")).status_code == HTTPStatus.OK
        stage.clock.advance("1h")
        assert (await stage.get("/")).status_code == HTTPStatus.SEE_OTHER
        assert (await stage.post("/sign-in", {"token": short.secret})).status_code == HTTPStatus.UNAUTHORIZED

        long = await access.issue(stage.desk, "long", role=Role.VIEWER)
        await stage.post("/sign-in", {"token": long.secret})
        assert (await stage.get("/")).status_code == HTTPStatus.OK
        await access.revoke(stage.desk, long.token.token_id)
        assert (await stage.get("/")).status_code == HTTPStatus.SEE_OTHER
        assert (await stage.post("/queues/pause")).status_code == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize(
    "address",
    [
        *("//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example/"),
        *("https:evil.example", "javascript:alert(1)", "/\t/evil.example", "/\n/evil.example", " //evil.example"),
        *("evil.example", "", "/\x00/evil.example", "/\r\nSet-Cookie: a=b"),
    ],
)
async def test_nobody_is_led_away_by_signing_in(address: str) -> None:
    async with ConsoleStage(needs_token=True) as stage:
        answer = await stage.post("/sign-in", {"token": await secret_of(stage), "next": address})

    assert answer.headers["location"] == "/"


@pytest.mark.parametrize("address", ["/letters?q=a%2Fb", "/incidents/ü", "/letters/50%25252Foff"])
async def test_every_page_of_the_console_can_be_come_back_to(address: str) -> None:
    async with ConsoleStage(needs_token=True) as stage:
        answer = await stage.post("/sign-in", {"token": await secret_of(stage), "next": address})

    assert httpx2.URL(answer.headers["location"]) == httpx2.URL(address)


async def test_signing_out_forgets_the_cookie() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        await stage.post("/sign-in", {"token": await secret_of(stage)})
        form = (await stage.see("/")).form("/sign-out")
        answer = await stage.post(form.action)
        assert answer.headers["location"] == "/sign-in"
        assert session.NAME not in stage.http.cookies
        assert (await stage.get("/")).status_code == HTTPStatus.SEE_OTHER


async def test_who_is_local_is_not_offered_to_sign_out() -> None:
    async with ConsoleStage() as stage:
        assert not (await stage.see("/")).offers("/sign-out")


async def test_a_part_of_a_page_is_refused_with_401_so_that_its_script_asks_for_the_whole() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        answer = await stage.get("/", headers={"X-Fragment": "live"})

    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert answer.headers["content-type"].startswith("text/plain")
    assert "You are signed out" in answer.text


async def test_an_act_of_nobody_is_refused_and_the_way_in_is_offered() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        answer = await stage.post("/settings/tokens", {"name": "x", "role": "admin"})
        issued = await access.tokens(stage.desk)

    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert read(answer.text).link("Sign in") == "/sign-in"
    assert not issued


async def test_a_store_that_is_away_is_no_reason_to_let_anybody_in_nor_to_say_where_it_is() -> None:
    class Away(MemoryStore):
        async def token_by_hash(self, sha256: str) -> Token | None:
            raise StoreUnavailable(f"postgresql://app:secret@db does not answer {sha256}")

    async with ConsoleStage(needs_token=True, store=Away) as stage:
        stage.http.cookies.set(session.NAME, "rdt_" + 43 * "x")
        answer = await stage.get("/")
        signing_in = await stage.post("/sign-in", {"token": "rdt_" + 43 * "x"})

    for one in (answer, signing_in):
        assert one.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        assert "postgresql" not in one.text
        assert one.headers["retry-after"]


@pytest.mark.parametrize(
    "cookie", ["redrive-session=", "redrive-session", "=;=;", "redrive-session=\xff", "a" * 20_000]
)
async def test_a_cookie_that_is_none_is_nobodys(cookie: str) -> None:
    async with ConsoleStage(needs_token=True) as stage:
        answer = await stage.get("/", headers={"Cookie": cookie.encode("latin-1")})

    assert answer.status_code == HTTPStatus.SEE_OTHER


async def test_mounted_somewhere_it_stays_there() -> None:
    async with ConsoleStage(needs_token=True) as stage:
        outer = Starlette(routes=[Mount("/redrive", stage.app)])
        transport = httpx2.ASGITransport(app=outer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8800") as http:
            sent = await http.get("/redrive/audit")
            assert urlsplit(sent.headers["location"]).path == "/redrive/sign-in"
            assert parse_qs(urlsplit(sent.headers["location"]).query) == {"next": ["/redrive/audit"]}
            form = {"token": await secret_of(stage, Role.ADMIN), "next": "/elsewhere"}
            answer = await http.post("/redrive/sign-in", data=form, headers=FROM_OWN_PAGE)
            assert answer.headers["location"] == "/redrive/"
            assert SimpleCookie(answer.headers["set-cookie"])[session.NAME]["path"] == "/redrive/"
            seen = read((await http.get("/redrive/")).text)

    ours = [href for _, href in seen.links if not href.startswith("#")]
    assert ours
    assert all(href.startswith("/redrive/") for href in ours)
    assert all(form.action.startswith("/redrive/") for form in seen.forms if form.action)
