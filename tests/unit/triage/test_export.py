import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from redrive.core.audit import AuditRecord
from redrive.core.errors import ConfigError
from redrive.core.stored import Collected
from redrive.triage import export
from tests.unit.triage.bench import Bench

APP = """
import redrive

app = redrive.App("memory://", name="shop")


@app.consumer("orders", retry=[1])
async def charge(order: dict, message: redrive.Message) -> None:
    if {condition}:
        raise ValueError("no customer")
"""


async def lines(bench: Bench, **wanted: Any) -> list[bytes]:
    return [line async for line in export.to_lines(bench.desk, await bench.selection(**wanted))]


async def test_letters_go_out_as_lines_and_come_back_as_they_were() -> None:
    bench, other = Bench(), Bench()
    await bench.collect(5, headers=(("raw", b"\xff\x00"),), key=b"\xfe")

    exported = await lines(bench)
    imported = await export.from_lines(other.desk, exported, source="a.jsonl")

    assert imported == export.Imported(Collected(new=5), [])
    assert (await other.get("letter-3")).letter == (await bench.get("letter-3")).letter
    assert (await export.from_lines(other.desk, exported, source="a.jsonl")).collected == Collected(known=5)


async def test_a_line_that_is_no_letter_is_told_of_and_the_rest_go_in() -> None:
    bench, other = Bench(), Bench()
    await bench.collect(2)
    one, two = await lines(bench)

    lines_ = [one, b"\n", b"gibberish\n", b'{"a": 1}\n', two]
    imported = await export.from_lines(other.desk, lines_, source="a.jsonl")

    assert imported.collected == Collected(new=2)
    assert [number for number, _ in imported.refused] == [3, 4]


async def operations(bench: Bench) -> list[AuditRecord]:
    records = (await bench.desk.store.records(limit=10_000)).rows
    return [one for one in reversed(records) if not one.letter_id]


async def test_an_import_is_audited_also_if_it_brings_nothing_new() -> None:
    bench, other = Bench(), Bench()
    await bench.collect(3)
    exported = [*await lines(bench), b"gibberish\n"]

    for _ in range(2):
        await export.from_lines(other.desk, exported, source="a.jsonl")

    first, second = await operations(other)
    assert (first.who, first.verb, first.selection) == (other.desk.who, "letters.import", "lines 1 to 4 of a.jsonl")
    assert (first.count, first.detail) == (
        3,
        {"refused": 1, "new": 3, "reopened": 0, "resolved": 0, "known": 0, "incidents": 1},
    )
    assert (second.count, second.detail) == (
        3,
        {"refused": 1, "new": 0, "reopened": 0, "resolved": 0, "known": 3, "incidents": 0},
    )
    letters = [one.letter_id for one in (await other.desk.store.records()).rows if one.letter_id]
    assert sorted(letters) == ["letter-0", "letter-1", "letter-2"]


async def test_every_batch_of_a_long_import_says_which_lines_it_was() -> None:
    bench, other = Bench(), Bench()
    await bench.collect(export.BATCH + 1)

    await export.from_lines(other.desk, [b"\n", *await lines(bench, everything=True)], source="a.jsonl")

    assert [(one.selection, one.count) for one in await operations(other)] == [
        (f"lines 2 to {export.BATCH + 1} of a.jsonl", export.BATCH),
        (f"lines {export.BATCH + 2} to {export.BATCH + 2} of a.jsonl", 1),
    ]


def run_pytest(test: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(test.parent), test.name],
        cwd=test.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("condition", "passes"), [('message.header("x") == "\\xff"', False), ("False", True)])
async def test_the_exported_test_fails_for_as_long_as_the_handler_does(
    tmp_path: Path, condition: str, *, passes: bool
) -> None:
    bench = Bench()
    await bench.collect(1, headers=(("x", "\xff".encode()),), error_message='no """customer"""\\')
    (tmp_path / "first.py").write_text(APP.format(condition=condition), encoding="utf-8")
    test = tmp_path / "test_letter.py"
    test.write_text(export.pytest_file(await bench.get(), "first:app"), encoding="utf-8")

    run = run_pytest(test)

    assert (run.returncode == 0) is passes, run.stdout + run.stderr
    assert passes or "ValueError: no customer" in run.stdout


@pytest.mark.parametrize("target", ["first", "first:", ":app", "first:app()", "import os;x:app", ""])
async def test_a_target_that_is_no_name_is_refused(target: str) -> None:
    bench = Bench()
    await bench.collect(1)

    with pytest.raises(ConfigError, match="expected module:attribute"):
        export.pytest_file(await bench.get(), target)
