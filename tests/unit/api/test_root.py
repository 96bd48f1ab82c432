"""What stands at the root, and the document that describes everything."""

import dataclasses
import re
from collections.abc import Sequence
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter
from pydantic import TypeAdapter

from redrive.api import examples
from redrive.api.routes.dlq import DlqStats
from redrive.api.schema import DlqMessage, DlqMessageWhole, LetterLife, LetterLine, LetterWhole
from redrive.core.access import Role, Token
from redrive.core.errors import StoreError, StoreUnavailable
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.redrive import Redrive
from redrive.core.stored import LetterRow, Page, Stats, StoredLetter
from redrive.door.headers import SECURITY
from redrive.stores.memory import MemoryStore
from tests.unit.api.stage import Stage

ROOT = "http://127.0.0.1:8800"


class Away(MemoryStore):
    """A store that does not answer."""

    async def get(self, letter_id: str) -> StoredLetter:
        raise StoreUnavailable("postgresql://me:hunter2@db/letters does not answer")

    async def find(
        self, query: Query, *, limit: int = 50, after: str | None = None, patience: timedelta | None = None
    ) -> Page[LetterRow]:
        raise StoreUnavailable("postgresql://me:hunter2@db/letters does not answer")

    async def stats(self, queue: str | None = None, *, states: Sequence[LetterState] = ()) -> Stats:
        raise StoreError("/var/lib/letters.db: the file is damaged")

    async def unfinished(self) -> Sequence[Redrive]:
        raise StoreUnavailable("the file is locked")

    async def token_by_hash(self, sha256: str) -> Token | None:
        raise StoreUnavailable("/var/lib/letters.db: the file is locked")


async def test_the_process_is_well_whatever_it_depends_on() -> None:
    async with Stage(needs_token=True, store=Away) as stage:
        answer = await stage.http.get(f"{ROOT}/healthz")

        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_readiness_names_each_dependency_and_what_is_wrong_with_it() -> None:
    async with Stage() as well, Stage(store=Away) as stage, Stage(needs_token=True, store=Away) as public:
        ready = await well.http.get(f"{ROOT}/readyz")
        not_ready = await stage.http.get(f"{ROOT}/readyz")
        unsaid = await public.http.get(f"{ROOT}/readyz")

        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        assert ready.json()["dependencies"] == {"store": "ok", "broker:memory": "ok"}
        assert (not_ready.status_code, not_ready.json()["status"]) == (503, "not ready")
        assert not_ready.json()["dependencies"] == {"store": "the file is locked", "broker:memory": "ok"}
        assert (unsaid.status_code, unsaid.json()["dependencies"]["store"]) == (503, "does not answer")


async def test_metrics_are_those_of_the_service_for_who_may_read() -> None:
    registry = CollectorRegistry()
    Counter("letters_seen", "for this test", registry=registry).inc(3)
    async with Stage(needs_token=True, metrics=registry) as stage:
        refused = await stage.http.get(f"{ROOT}/metrics")
        answer = await stage.http.get(f"{ROOT}/metrics", headers=await stage.token(Role.VIEWER))

        assert refused.status_code == 401
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert "letters_seen_total 3.0" in answer.text


async def test_a_store_that_is_away_is_an_honest_503() -> None:
    async with Stage(store=Away) as stage:
        for path in ("/dlq/messages", "/dlq/messages/letter-0", "/letters", "/letters/letter-0", "/dlq/stats"):
            answer = await stage.ask(path)
            assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
            assert int(answer.headers["retry-after"]) > 0
            assert "hunter2" not in answer.text


async def test_who_is_not_recognised_is_not_told_where_the_store_is() -> None:
    async with Stage(needs_token=True, store=Away) as stage:
        answer = await stage.ask("/letters", headers={"Authorization": f"Bearer rdt_{'a' * 43}"})

        assert answer.status_code == 503
        assert "/var/lib" not in answer.text


async def test_every_answer_has_the_headers_that_bind_a_browser() -> None:
    async with Stage() as stage:
        await stage.collect(1)
        paths = ["/healthz", "/readyz", "/metrics", "/openapi.json", "/nowhere", "/api/v1/letters", "/api/v1/letters/x"]
        answers = [await stage.http.get(f"{ROOT}{path}") for path in paths]
        answers.append(await stage.http.get(f"{ROOT}/api/v1/letters", headers={"Host": "evil.example"}))
        answers.append(await stage.ask("/dlq/messages/letter-0/payload"))

        for answer in answers:
            assert {name: answer.headers[name] for name in SECURITY} == SECURITY


async def test_the_page_about_the_api_has_every_operation_and_nothing_from_elsewhere() -> None:
    async with Stage() as stage:
        answer = await stage.http.get(f"{ROOT}/docs")
        document = (await stage.http.get(f"{ROOT}/openapi.json")).json()

        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        for path, methods in document["paths"].items():
            for method in methods:
                assert f"{method.upper()} {path}" in unescape(answer.text)
        assert not re.search(r"<script|https?://|\son\w+=|javascript:", answer.text)
        assert "style-src 'sha256-" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("kind", "example"),
    [
        (LetterLine, examples.LINE),
        (DlqMessage, examples.MESSAGE),
        (DlqMessageWhole, examples.WHOLE_MESSAGE),
        (DlqStats, examples.STATS),
        (LetterWhole, examples.WHOLE),
        (LetterLife, examples.LIFE),
    ],
)
def test_examples_have_the_shape_of_what_they_are_examples_of(kind: Any, example: dict[str, Any]) -> None:
    assert set(example) == {field.name for field in dataclasses.fields(kind)}
    TypeAdapter(kind).validate_python(example)


async def test_every_operation_about_letters_has_an_example_and_says_what_problems_look_like() -> None:
    async with Stage() as stage:
        document = (await stage.http.get(f"{ROOT}/openapi.json")).json()

        for path, methods in document["paths"].items():
            for operation in methods.values():
                problem = operation["responses"]["4XX"]["content"]["application/problem+json"]["schema"]
                assert problem == {"$ref": "#/components/schemas/Problem"}
                assert operation["description"]
                if operation["tags"][0] in ("dlq", "letters") and not path.endswith("/payload"):
                    good = next(found for status, found in operation["responses"].items() if status.startswith("2"))
                    assert "example" in good["content"]["application/json"], path
