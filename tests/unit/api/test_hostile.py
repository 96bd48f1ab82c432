"""Input that nobody means well with: always answered, as a problem, and never our mistake."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from redrive.config.settings import ServiceSettings
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.stored import LetterRow, Page
from redrive.stores.memory import MemoryStore
from tests.unit.api.stage import Stage

PROBLEM = "application/problem+json"
OFTEN = ServiceSettings(rate_limit=100_000)
LISTS = ("/dlq/messages", "/letters", "/dlq/stats")


def refused(answer: httpx2.Response, *statuses: int) -> bool:
    expected = statuses or range(400, 500)
    assert answer.status_code in expected, answer.text
    assert answer.headers["content-type"] == PROBLEM
    said = answer.json()
    assert {"type", "title", "status", "detail"} <= set(said)
    assert said["status"] == answer.status_code
    return True


QUERIES = (
    *("limit=0", "limit=-1", "limit=101", "limit=1.5", "limit=abc", "limit=", "limit=NaN", "limit=1e3"),
    *("limit=" + "9" * 30, "limit=" + "9" * 5000, "limit=0x10", "limit=%00"),
    *("queue=%00", "q=a%00b", "user_id=%00", "error_type=", "queue=" + "x" * 1025),
    *("state=lost", "state=", "reason=because", "state=OPEN"),
    *("from=yesterday", "from=2026-01-01", "to=2026-01-01T00:00:00", "from=0001-01-01T00:00:00%2B23:00"),
    *("to=9999-12-31T23:59:59-23:00", "from=" + "9" * 400, "from=NaN", "from=inf", "to=-" + "9" * 20),
    *("after=" + "x" * 2000, "after=%00"),
    *("limit=1&limit=2", "queue=a&queue=b", "q=a&q=b", "reveal=true&reveal=false"),
    *("kueue=orders", "$where=1", "queue[$ne]=x", "__proto__=1", "%ED%A0%80=1", "limit%00=1"),
    "reveal=maybe",
)
CURSORS = ("x", "-1", "0x1", "9" * 400, "1;drop table letter", "null", "²", "%ED%A0%80", "../")
TEXTS = ("%ED%A0%80", "%FF%FE", "%F0%9F%92%A9", "%E2%80%AE", "(a%2B)%2B%24", "%25%25", "%27%20OR%201=1--", "*", '"')
IDS = (
    *("..%2f..%2fetc%2fpasswd", "%2e%2e", "%2e%2e%2f", "~retry", "{}", "%20", "%00", "%ED%A0%80", "%0d%0aX: y"),
    *("x" * 1024, "x" * 5000, "%F0%9F%92%A9", "$ne", "*", "-1", "9" * 400, "null", "%3Cscript%3E"),
)


async def test_parameters_that_make_no_sense_are_refused() -> None:
    async with Stage(settings=OFTEN) as stage:
        await stage.collect(1)

        for query in QUERIES:
            assert refused(await stage.ask(f"/dlq/messages?{query}"), 422), query


@pytest.mark.parametrize("path", ["/dlq/messages", "/letters", "/audit", "/incidents", "/redrives"])
async def test_a_cursor_that_is_none_is_a_bad_request(path: str) -> None:
    async with Stage(settings=OFTEN) as stage:
        await stage.collect(3)

        for cursor in CURSORS:
            assert refused(await stage.ask(f"{path}?after={cursor}"), 400), cursor


async def test_strange_text_is_looked_for_as_it_is() -> None:
    async with Stage(settings=OFTEN) as stage:
        await stage.collect(1)

        for text in TEXTS:
            for path in LISTS:
                assert (await stage.ask(f"{path}?queue={text}")).status_code == 200, text
            assert (await stage.ask(f"/letters?q={text}&user_id={text}&kind={text}&fingerprint={text}")).json() == []


async def test_ids_that_nobody_has_are_not_found() -> None:
    async with Stage(settings=OFTEN) as stage:
        await stage.collect(1)

        for name in IDS:
            assert refused(await stage.ask(f"/dlq/messages/{name}"))
            assert refused(await stage.ask(f"/dlq/messages/{name}/payload"))
            assert refused(await stage.ask(f"/letters/{name}"))
            assert refused(await stage.http.delete(f"/dlq/messages/{name}"))
            for verb, body in (("note", {"text": "x"}), ("edit", {"text": "x"}), ("outcome", {"succeeded": True})):
                assert refused(await stage.post(f"/letters/{name}/{verb}", body))
            assert refused(await stage.post(f"/dlq/messages/{name}/retry"))
        assert (await stage.get()).life.state is LetterState.OPEN


async def test_a_way_out_of_the_path_leads_nowhere() -> None:
    async with Stage() as stage:
        for path in (
            "/api/v1/letters/../../etc/passwd",
            "/api/v1//letters",
            "/api/v1/letters/",
            "//evil.example/",
            "/%00",
        ):
            scope: dict[str, Any] = {
                "type": "http",
                "method": "GET",
                "path": path,
                "raw_path": path.encode(),
                "query_string": b"",
            }
            scope |= {"headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1), "http_version": "1.1"}
            scope |= {"scheme": "http", "server": ("127.0.0.1", 8800), "root_path": "", "asgi": {"version": "3.0"}}
            sent: list[Any] = []

            async def receive() -> dict[str, Any]:
                return {"type": "http.request", "body": b""}

            async def send(message: Any, sent: list[Any] = sent) -> None:
                sent.append(message)

            await stage.app(scope, receive, send)
            assert sent[0]["status"] == 404, path


BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"\xff\xfe",
    b"\xef\xbb\xbf{",
    b"[" * 100_000,
    b'{"text":' * 50_000,
    b'{"json": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"text": ' + b"9" * 5000 + b"}",
    b'{"succeeded": true, "generation": ' + b"9" * 5000 + b"}",
    b'{"succeeded": true, "generation": 1e400}',
    b'{"succeeded": NaN}',
    b'{"json": NaN}',
    b'{"json": Infinity}',
    b'{"text": "\\ud800"}',
    b'{"text": "a\\u0000b", "all": true, "letters": [{"letter_id": "\\u0000", "version": 1}]}',
    b'{"' + b"x" * 100_000 + b'": 1}',
    b"{" + b",".join(b'"k%d": 1' % number for number in range(10_000)) + b"}",
    b"--boundary\r\ncontent-disposition: form-data\r\n\r\nx",
]


@pytest.mark.parametrize("path", ["discard", "letter-0/outcome", "letter-0/note", "letter-0/edit"])
async def test_bodies_that_make_no_sense_are_refused(path: str) -> None:
    async with Stage(settings=OFTEN) as stage:
        await stage.collect(1)
        headers = {"Content-Type": "application/json"}

        for number, body in enumerate(BODIES):
            answer = await stage.http.post(f"/letters/{path}", content=body, headers=headers)
            assert refused(answer), number
        assert (await stage.get()).life.state is LetterState.OPEN


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
        "json",
        "application/xml",
        "a;" * 500,
    ],
)
async def test_a_body_of_another_kind_than_json_is_refused(kind: str) -> None:
    async with Stage() as stage:
        await stage.collect(1)

        answer = await stage.http.post(
            "/letters/letter-0/note", content=b'{"text": "x"}', headers={"Content-Type": kind} if kind else {}
        )

        assert refused(answer, 415, 422)
        assert (await stage.get()).note == ""


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/letters/purge", {"older_than": False, "dry_run": False}),
        ("/letters/discard", {"letters": [{"letter_id": "letter-0", "version": True}]}),
        ("/letters/letter-0/outcome", {"succeeded": True, "generation": True}),
        ("/letters/letter-0/outcome", {"succeeded": True, "attempts": "1"}),
        ("/redrives", {"all": True, "report_within": True}),
        ("/redrives", {"all": True, "rate": True}),
        ("/redrives", {"all": True, "rate": "1"}),
        ("/redrives", {"all": True, "canary": [True]}),
        ("/tokens", {"name": "x", "role": "viewer", "expires_in": True}),
    ],
)
async def test_yes_no_and_text_are_no_numbers(path: str, body: Any) -> None:
    """A purge of what is older than `false` would be one of everything."""
    async with Stage() as stage:
        await stage.collect(1)

        assert refused(await stage.post(path, body), 422)
        assert (await stage.get()).life.state is LetterState.OPEN


async def test_ten_thousand_headers_change_nothing() -> None:
    async with Stage() as stage:
        headers = [(f"x-{number}", "y") for number in range(10_000)]

        assert (await stage.http.get("/letters", headers=headers)).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "BREW", "DELETE"])
async def test_methods_that_are_not_there_are_refused(method: str) -> None:
    async with Stage() as stage:
        answer = await stage.http.request(method, "/letters")

        assert refused(answer, 405)
        assert answer.headers["allow"] == "GET"


async def test_a_method_that_is_not_there_is_told_which_are() -> None:
    async with Stage() as stage:
        answers = [await stage.http.put(path) for path in ("/dlq/messages", "/dlq/messages/x", "/dlq/messages/x/retry")]

        assert [answer.headers["allow"] for answer in answers] == ["DELETE, GET", "DELETE, GET", "POST"]
        assert (await stage.http.put("/letters/discard")).headers["allow"] == "POST"  # it is no letter's id


async def test_what_was_sent_is_not_sent_back() -> None:
    async with Stage() as stage:
        answer = await stage.post("/letters/letter-0/outcome", {"succeeded": "hunter2", "password": "hunter3"})

        assert refused(answer, 422)
        assert "hunter" not in answer.text
        assert [one["at"] for one in answer.json()["errors"]] == ["body.succeeded", "body.password"]


async def test_every_mistake_is_told_at_once() -> None:
    async with Stage() as stage:
        answer = await stage.ask("/dlq/messages?limit=0&state=lost&reason=x&from=y")

        assert {one["at"] for one in answer.json()["errors"]} == {
            *("query.limit", "query.state.0", "query.reason", "query.from")
        }


async def test_a_mistake_of_ours_says_nothing_about_us_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryStore):
        async def find(
            self, query: Query, *, limit: int = 50, after: str | None = None, patience: timedelta | None = None
        ) -> Page[LetterRow]:
            raise RuntimeError("hunter2")

    async with Stage(store=Broken) as stage:
        answer = await stage.ask("/letters")

        assert (answer.status_code, answer.headers["content-type"]) == (500, PROBLEM)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "hunter2" not in answer.text
        assert "GET /api/v1/letters failed" in caplog.text


@pytest.mark.parametrize("path", LISTS[:2])
async def test_every_mistake_of_a_query_is_told_at_once(path: str) -> None:
    async with Stage(settings=OFTEN) as stage:
        answer = await stage.ask(f"{path}?limit=500&state=lost&kueue=orders&q=a&q=b")

    assert {error["at"] for error in answer.json()["errors"]} == {
        *("query.limit", "query.state.0", "query.kueue", "query.q")
    }


@pytest.mark.parametrize(
    "kind", [{}, {"Content-Type": "application/x-www-form-urlencoded"}, {"Content-Type": "text/plain"}]
)
async def test_a_body_that_is_not_called_json_is_told_which_header_it_needs(kind: dict[str, str]) -> None:
    async with Stage() as stage:
        answer = await stage.http.post("/redrives", content=b'{"all": true}', headers=kind)

        assert refused(answer, 422)
        assert answer.json()["detail"] == "body: expected JSON, and the header Content-Type: application/json"


async def test_json_of_another_shape_is_not_blamed_on_its_header() -> None:
    async with Stage() as stage:
        for answer in (await stage.post("/redrives", [1]), await stage.http.post("/redrives")):
            assert refused(answer, 422)
            assert "Content-Type" not in answer.text
