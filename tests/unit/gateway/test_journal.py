import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from redrive.core.errors import ConfigError
from redrive.gateway import journal
from redrive.gateway.journal import Journal
from tests.unit.gateway.stage import Provider, a_request, answer, on_stage, refusal, rows


async def test_rows_are_written_in_their_order(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    for n in range(1000):
        log.write("responses", {"n": n})
    await log.aclose()
    await log.aclose()

    assert [row["n"] for row in rows(tmp_path, "responses")] == [*range(1000)]
    assert log.dropped == 0


async def test_a_line_that_was_cut_short_stays_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "gateway" / "errors.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'{"n": 1}\n{"n"')
    log = Journal(tmp_path)
    log.write("errors", {"n": 2})
    await log.aclose()

    assert path.read_bytes().splitlines() == [b'{"n": 1}', b'{"n"', b'{"n":2}']


async def test_files_are_turned_over_and_the_oldest_goes(tmp_path: Path) -> None:
    for n in range(10):
        log = Journal(tmp_path, largest=10)
        log.write("retries", {"n": n, "text": "more than ten bytes"})
        await log.aclose()

    found = sorted(path.name for path in (tmp_path / "gateway").iterdir())
    assert found == [f"retries.jsonl.{age}" for age in range(1, journal.OLDER + 1)]
    assert json.loads((tmp_path / "gateway" / "retries.jsonl.1").read_text())["n"] == 9


async def test_a_disk_that_refuses_costs_rows_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / "responses.jsonl").mkdir()  # nothing can be written there
    async with on_stage(Provider(), log_dir=tmp_path) as stage:
        assert (await stage.ask(a_request())).text == "hello"
        await stage.gateway.aclose()
        assert stage.gateway.stats()["fast"].journal_dropped == 1


class NearlyFull(io.FileIO):
    """A file on a disk that takes so many more bytes, and then has room again."""

    left = 0

    def write(self, data: Any) -> int:
        took = super().write(data[: NearlyFull.left])
        NearlyFull.left = 1000
        return took


async def test_what_a_nearly_full_disk_does_not_take_is_counted_and_the_next_row_has_a_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as disk:
        disk.setattr(Path, "open", lambda path, mode, buffering: NearlyFull(path, mode.replace("b", "")))
        disk.setattr(NearlyFull, "left", 12)
        log = Journal(tmp_path)
        log._rows.extend(("errors", {"n": n}) for n in range(3))  # noqa: SLF001 - all of them in one write
        log._flush()  # noqa: SLF001
        assert log.dropped == 2
        log.write("errors", {"n": 3})
        await log.aclose()

    written = (tmp_path / "gateway" / "errors.jsonl").read_bytes()
    assert written.splitlines() == [b'{"n":0}', b'{"n"', b'{"n":3}']
    assert log.dropped == 2


async def test_a_folder_that_vanishes_is_made_again(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    (tmp_path / "gateway").rmdir()
    log.write("responses", {"n": 1})
    await log.aclose()

    assert rows(tmp_path, "responses") == [{"n": 1}]


def test_a_folder_that_cannot_be_made_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="log_dir"):
        Journal(tmp_path / "file")


async def test_beyond_its_buffer_rows_are_dropped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    flush = Journal._flush  # noqa: SLF001

    def held(self: Journal) -> None:
        free.wait(60)
        flush(self)

    monkeypatch.setattr(Journal, "_flush", held)
    log = Journal(tmp_path)
    for n in range(journal.BUFFERED + 5):
        log.write("responses", {"n": n})
    assert log.dropped == 5
    free.set()
    await log.aclose()
    assert len(rows(tmp_path, "responses")) == journal.BUFFERED


async def test_no_prompt_no_answer_and_no_key_is_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-opensesameopensesame")
    words = "your prompt was: the-prompt-itself"
    provider = Provider(refusal(500, words=words), answer("the-answer-itself"), refusal(400, words=words))
    async with on_stage(provider, log_dir=tmp_path, api_key_env="SOME_KEY") as stage:
        messages = [{"role": "user", "content": "the-prompt-itself"}]
        await stage.ask(a_request("r1", messages=messages))
        await stage.error(a_request("r2", messages=messages))

    written = b"".join(path.read_bytes() for path in (tmp_path / "gateway").iterdir())
    assert written.count(b"\n") == 3
    for secret in (b"itself", b"opensesame"):
        assert secret not in written


async def test_a_row_that_json_cannot_say_is_written_as_text(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    log.write("errors", {"what": object})
    await log.aclose()

    assert rows(tmp_path, "errors") == [{"what": "<class 'object'>"}]
