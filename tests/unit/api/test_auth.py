"""Who may ask."""

from datetime import timedelta
from typing import Annotated

import pytest
from fastapi import APIRouter, Depends

from redrive.api.auth import PermittedRoute, allowed
from redrive.core.access import Role
from redrive.triage import access
from redrive.triage.access import RIGHTS
from redrive.triage.desk import Desk
from tests.unit.api.stage import Stage

PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer rdt_nothing",
        "Bearer " + "x" * 10_000,
        "Basic dXNlcjpwYXNz",
        "rdt_" + "a" * 43,
        "Bearer rdt_" + "a" * 43,
        "Bearer \xff",
    ],
)
async def test_without_a_token_that_is_valid_nobody_gets_in(header: str | None) -> None:
    async with Stage(needs_token=True) as stage:
        headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]

        answer = await stage.http.get("/letters", headers=headers)

        assert (answer.status_code, answer.headers["content-type"]) == (401, PROBLEM)
        assert answer.headers["www-authenticate"] == 'Bearer realm="redrive"'


async def test_a_token_that_expired_or_was_revoked_opens_nothing() -> None:
    async with Stage(needs_token=True) as stage:
        issued = await access.issue(stage.desk, "ann", role=Role.VIEWER, expires_in=60)
        other = await access.issue(stage.desk, "bob", role=Role.VIEWER)
        tokens = [{"Authorization": f"Bearer {one.secret}"} for one in (issued, other)]

        before = [(await stage.ask("/letters", headers=token)).status_code for token in tokens]
        stage.clock.advance(timedelta(minutes=1))
        await access.revoke(stage.desk, other.token.token_id)
        after = [(await stage.ask("/letters", headers=token)).status_code for token in tokens]

        assert (before, after) == ([200, 200], [401, 401])


async def test_two_tokens_in_one_request_are_none() -> None:
    async with Stage(needs_token=True) as stage:
        token = (await stage.token(Role.ADMIN))["Authorization"]

        answer = await stage.http.get("/letters", headers=[("Authorization", token), ("Authorization", token)])

        assert answer.status_code == 401


async def test_a_role_that_does_not_suffice_is_refused_before_the_body_is_read() -> None:
    async with Stage(needs_token=True) as stage:
        viewer = await stage.token(Role.VIEWER)

        answer = await stage.http.post("/letters/letter-0/note", content=b"{no json", headers=viewer)
        unknown = await stage.http.post("/letters/letter-0/note", content=b"{no json")

        assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM)
        assert "note needs the role operator" in answer.json()["detail"]
        assert unknown.status_code == 401


async def test_the_audit_names_the_caller() -> None:
    async with Stage(needs_token=True) as stage:
        await stage.collect(1)
        await stage.post("/letters/letter-0/note", {"text": "x"}, headers=await stage.token(Role.OPERATOR))

        (record,) = (await stage.store.records(letter_id="letter-0")).rows

        assert record.who == "a operator"


async def test_on_loopback_without_a_token_the_caller_is_local_and_a_wrong_token_is_told() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        await stage.post("/letters/letter-0/note", {"text": "x"})
        (record,) = (await stage.store.records(letter_id="letter-0")).rows

        assert record.who == "local"
        assert (await stage.ask("/letters", headers={"Authorization": "Bearer rdt_x"})).status_code == 401


async def test_loopback_has_several_names() -> None:
    async with Stage() as stage:
        for host in ("127.0.0.1:8800", "localhost", "LOCALHOST:1", "[::1]:8800", "127.9.9.9"):
            assert (await stage.ask("/letters", headers={"Host": host})).status_code == 200, host


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8800"},
        {"Host": "localhost.evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "10.0.0.1"},
        {"Host": "0.0.0.0"},  # noqa: S104 - nothing is bound
        {"Host": ""},
        {"Host": "127.0.0.1@evil.example"},
        {"Host": "[::1"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "127.0.0.1:8800", "Origin": "http://localhost:8800"},
    ],
)
async def test_without_tokens_what_a_foreign_page_may_have_sent_is_refused(headers: dict[str, str]) -> None:
    async with Stage() as stage:
        for path in ("/api/v1/letters", "/metrics", "/docs", "/healthz"):
            answer = await stage.http.get(f"http://127.0.0.1:8800{path}", headers=headers)
            assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM)


@pytest.mark.parametrize("name", ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"])
async def test_without_tokens_what_a_proxy_passes_on_is_refused(name: str) -> None:
    async with Stage() as stage:
        answer = await stage.http.get("http://127.0.0.1:8800/api/v1/letters", headers={name: "203.0.113.9"})

        assert (answer.status_code, "proxy" in answer.json()["detail"]) == (403, True)


async def test_our_own_page_may_ask() -> None:
    async with Stage() as stage:
        headers = {"Origin": "http://127.0.0.1:8800", "Sec-Fetch-Site": "same-origin"}

        assert (await stage.ask("/letters", headers=headers)).status_code == 200


async def test_with_tokens_the_service_may_be_called_by_any_name() -> None:
    async with Stage(needs_token=True) as stage:
        headers = {**await stage.token(Role.VIEWER), "Host": "redrive.example", "Sec-Fetch-Site": "cross-site"}

        assert (await stage.ask("/letters", headers=headers)).status_code == 200


async def test_no_other_origin_is_ever_invited() -> None:
    async with Stage(needs_token=True) as stage:
        token = await stage.token(Role.VIEWER)
        asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "GET"}

        preflight = await stage.http.options("/letters", headers=asked)
        answer = await stage.ask("/letters", headers={**token, **asked})

        assert preflight.status_code == 405
        assert not [name for name in (*preflight.headers, *answer.headers) if name.startswith("access-control")]


async def test_every_operation_says_which_permission_it_needs() -> None:
    async with Stage(needs_token=True) as stage:
        document = (await stage.http.get("http://127.0.0.1:8800/openapi.json")).json()
        operations = {
            f"{method.upper()} {path}": operation
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        open_to_all = {name for name, operation in operations.items() if "x-permission" not in operation}

        assert open_to_all == {"GET /healthz", "GET /readyz"}
        assert {one["x-permission"] for one in operations.values() if "x-permission" in one} <= set(RIGHTS)
        assert all(one["security"] == [{"token": []}] for one in operations.values() if "x-permission" in one)


async def test_a_service_without_tokens_does_not_say_that_it_needs_one() -> None:
    async with Stage() as stage:
        assert (
            "securitySchemes" not in (await stage.http.get("http://127.0.0.1:8800/openapi.json")).json()["components"]
        )


def test_a_route_without_a_permission_cannot_be_made() -> None:
    router = APIRouter(route_class=PermittedRoute)

    with pytest.raises(ValueError, match="unpack"):
        router.add_api_route("/open", lambda: None)


def test_a_permission_that_is_not_in_the_table_cannot_be_asked_for() -> None:
    with pytest.raises(KeyError):
        allowed("everything")


async def test_a_permission_holds_on_any_kind_of_route() -> None:
    async with Stage(needs_token=True) as stage:
        router = APIRouter()

        @router.get("/plain")
        async def plain(desk: Annotated[Desk, Depends(allowed("tokens"))]) -> str:
            return desk.who

        stage.app.include_router(router, prefix="/api/v1")

        assert (await stage.ask("/plain")).status_code == 401
        assert (await stage.ask("/plain", headers=await stage.token(Role.OPERATOR))).status_code == 403
        assert (await stage.ask("/plain", headers=await stage.token(Role.ADMIN))).json() == "a admin"
