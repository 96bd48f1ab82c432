from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from redrive.core.access import Role
from redrive.core.errors import StoreUnavailable
from redrive.core.query import Query
from redrive.core.stored import Collected, Page, StoredLetter
from redrive.core.wire import from_json
from redrive.triage import export, letters
from tests.unit.api.stage import Stage

EVER = datetime.max.replace(tzinfo=UTC)
JSON_LINES = {"Content-Type": "application/jsonl"}


async def exported(stage: Stage, **params: Any) -> bytes:
    answer = await stage.ask("/export", params=params or {"all": "true"})
    assert answer.status_code == 200, answer.text
    return answer.content


async def test_letters_leave_whole_and_come_in_elsewhere_as_they_were() -> None:
    async with Stage() as here, Stage() as there:
        await here.collect(3, headers=(("raw", b"\xff\x00"), ("authorization", b"secret")), key=b"\xfe")

        lines = await exported(here)
        first = await there.http.post("/import", content=lines, headers=JSON_LINES)
        second = await there.http.post("/import", content=lines, headers=JSON_LINES)

        assert first.json() == {"new": 3, "reopened": 0, "known": 0, "incidents": 1, "refused": 0, "refused_lines": []}
        assert second.json()["known"] == 3
        assert (await there.get("letter-1")).letter == (await here.get("letter-1")).letter


async def test_an_export_is_by_filter_newest_first_and_page_after_page() -> None:
    async with Stage() as stage:
        await stage.collect(450, queue="mails")
        await stage.collect(1, prefix="other")

        found = [from_json(line) for line in (await exported(stage, queue="mails")).splitlines()]

        assert len(found) == 450
        assert (found[0].letter_id, found[-1].letter_id) == ("letter-449", "letter-0")


async def test_an_export_reads_large_letters_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "ENOUGH", 1000)
    async with Stage() as stage:
        await stage.collect(40, payload=b"x" * 1001)
        await stage.collect(20, prefix="small", payload=b"x")
        read, store_read = list[int](), stage.store.read

        async def watched(query: Query, **page: Any) -> Page[StoredLetter]:
            found = await store_read(query, **page)
            read.append(len(found.rows))
            return found

        monkeypatch.setattr(stage.store, "read", watched)
        found = (await exported(stage)).splitlines()

        assert len(found) == sum(read) == 60
        assert read == [21, *[1] * 39]


async def test_letters_that_go_while_they_are_exported_are_left_out_and_no_other_is_told_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(letters, "ENOUGH", 1)
    async with Stage() as stage:
        await stage.collect(3)
        read = stage.store.read

        async def going(query: Query, **page: Any) -> Page[StoredLetter]:
            found = await read(query, **page)
            await stage.store.purge(Query(text="letter-1"), before=EVER, limit=1, act=stage.desk.act("letters.purge"))
            return found

        monkeypatch.setattr(stage.store, "read", going)
        found = [from_json(line).letter_id for line in (await exported(stage)).splitlines()]

        assert found == ["letter-2", "letter-0"]


async def test_an_export_is_on_record_once_with_what_was_asked_for() -> None:
    async with Stage() as stage:
        await stage.collect(3)

        await exported(stage, queue="orders", state="open")

        (record,) = (await stage.store.records()).rows
        assert (record.who, record.verb, record.selection) == ("local", "letters.export", "queue=orders, state=open")
        assert (record.count, record.detail) == (3, {})


async def test_an_export_of_everything_must_be_asked_for() -> None:
    async with Stage() as stage:
        answer = await stage.ask("/export")

        assert (answer.status_code, "all=true" in answer.json()["detail"]) == (400, True)
        assert await stage.verbs() == []


async def test_a_store_that_is_away_is_an_answer_and_no_broken_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("away")

    async with Stage() as stage:
        monkeypatch.setattr(stage.store, "record", away)

        assert (await stage.ask("/export?all=true")).status_code == 503


@pytest.mark.parametrize(
    "query", ["queu=orders", "from=yesterday", "reason=bored", "queue=a&queue=b", "q=%00", "limit=1"]
)
async def test_parameters_that_make_no_sense_are_refused(query: str) -> None:
    async with Stage() as stage:
        assert (await stage.ask(f"/export?{query}")).status_code == 422


async def test_lines_that_are_no_letters_are_told_by_number_and_the_rest_go_in() -> None:
    async with Stage() as here, Stage() as there:
        await here.collect(2)
        one, two = (await exported(here)).splitlines(keepends=True)
        deep = b'{"a":' * 100_000
        number = b'{"letter_id": ' + b"9" * 5000 + b"}\n"
        body = b"\n".join(
            [one.strip(), b"", b"gibberish", deep, number.strip(), b"\xff\xfe", b"[]", b"NaN", two.strip()]
        )

        answer = (await there.http.post("/import", content=body, headers=JSON_LINES)).json()

        assert (answer["new"], answer["refused"]) == (2, 6)
        assert [line["line"] for line in answer["refused_lines"]] == [3, 4, 5, 6, 7, 8]


async def test_an_empty_import_brings_nothing() -> None:
    async with Stage() as stage:
        answer = await stage.http.post("/import", content=b"", headers=JSON_LINES)

        assert (answer.status_code, answer.json()["new"], answer.json()["refused"]) == (200, 0, 0)


async def test_a_viewer_exports_nothing_and_an_operator_imports_nothing() -> None:
    async with Stage(needs_token=True) as stage:
        viewer, operator, admin = [await stage.token(role) for role in Role]

        assert (await stage.ask("/export?all=true", headers=viewer)).status_code == 403
        assert (await stage.ask("/export?all=true", headers=operator)).status_code == 200
        assert (await stage.http.post("/import", content=b"", headers=operator)).status_code == 403
        assert (await stage.http.post("/import", content=b"", headers=admin)).status_code == 200


async def test_a_body_larger_than_the_cap_of_other_routes_is_streamed_in() -> None:
    async def blank() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 2**18 + b"\n"

    async with Stage() as stage:
        answer = await stage.http.post("/import", content=blank(), headers=JSON_LINES)

        assert (answer.status_code, answer.json()["refused"]) == (200, 0)


async def test_what_the_store_refuses_is_told_and_the_rest_go_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Stage() as here, Stage() as there:
        await here.collect(5)
        lines = await exported(here)
        collect = there.store.collect

        async def picky(letters: Any, *rest: Any, **act: Any) -> Collected:
            if any(letter.letter_id == "letter-2" for letter in letters):
                raise OverflowError("too large")
            return await collect(letters, *rest, **act)

        monkeypatch.setattr(there.store, "collect", picky)
        answer = (await there.http.post("/import", content=lines, headers=JSON_LINES)).json()

        assert answer["new"] == 4
        assert answer["refused_lines"] == [{"line": 3, "why": "the store refused it: OverflowError: too large"}]


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        ((b"a\nb", b"c\n", b"d"), [b"a\n", b"bc\n", b"d"]),
        ((b"a\r", b"\nb\rc\n"), [b"a\r\n", b"b\rc\n"]),
        ((b"", b"\n\n"), [b"\n", b"\n"]),
        ((b"123456789", b"0\nok\n"), [b"12345", b"ok\n"]),
        ((b"1234\n", b"12345\n"), [b"1234\n", b"12345"]),
    ],
)
async def test_lines_are_put_together_from_what_comes_in(parts: tuple[bytes, ...], lines: list[bytes]) -> None:
    assert [line async for line in export.split_lines(chunks(*parts), longest=4)] == [line[:5] for line in lines]


async def test_a_line_that_is_too_long_is_told_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "LONGEST_LINE", 100)
    async with Stage() as stage:
        answer = await stage.http.post("/import", content=b'{"a": "' + b"x" * 1000 + b'"}\n', headers=JSON_LINES)

        (refused,) = answer.json()["refused_lines"]
        assert (refused["line"], "at most" in refused["why"]) == (1, True)


async def test_refusals_without_end_are_counted_and_only_the_first_are_told() -> None:
    async with Stage() as stage:
        answer = (await stage.http.post("/import", content=b"x\n" * 1500, headers=JSON_LINES)).json()

        assert (answer["refused"], len(answer["refused_lines"])) == (1500, export.REFUSALS_TOLD)


async def test_batches_are_bounded_by_their_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "BATCH_BYTES", 1)
    async with Stage() as here, Stage() as there:
        await here.collect(3)
        await there.http.post("/import", content=await exported(here), headers=JSON_LINES)

        assert await there.verbs() == ["letters.import"] * 3
