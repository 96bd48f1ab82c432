import subprocess
import sys

from benchmarks.runs import ROOT
from benchmarks.sqlite.cases import cases


def test_the_sqlite_benchmark_runs_to_its_end_and_has_a_row_for_each_case() -> None:
    flags = ("--quick", "--scale", "0.0005", "--repeats", "1")
    document = ROOT / "docs" / "benchmarks.md"
    before = document.read_bytes()
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.sqlite", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    rows = [line.split("|")[1].strip() for line in ended.stdout.splitlines() if line.startswith("| ")]
    assert {case.name for case in cases(0.0005)} <= {*rows}
    assert len([row for row in rows if "÷" in row or "RSS" in row]) == 3
    assert document.read_bytes() == before
