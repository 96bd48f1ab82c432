import subprocess
import sys

from benchmarks.kafka.cases import cases as kafka_cases
from benchmarks.runs import ROOT
from benchmarks.service.questions import QUESTIONS
from benchmarks.sqlite.cases import cases
from benchmarks.store import copying
from tests.servers.chromium import CHROMIUM
from tests.servers.install import require
from tests.servers.kafka import jars as kafka_jars
from tests.servers.postgres import POSTGRES


def rows_of(program: str, *flags: str) -> list[str]:
    """What the rows of all tables of a benchmark begin with; one that leaves the document as it is."""
    document = ROOT / "docs" / "benchmarks.md"
    before = document.read_bytes()
    ended = subprocess.run(
        [sys.executable, "-m", program, *flags], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert document.read_bytes() == before
    return [line.split("|")[1].strip() for line in ended.stdout.splitlines() if line.startswith("| ")]


def test_the_sqlite_benchmark_runs_to_its_end_and_has_a_row_for_each_case() -> None:
    rows = rows_of("benchmarks.sqlite", "--quick", "--scale", "0.0005", "--repeats", "1")

    assert {case.name for case in cases(0.0005)} <= {*rows}
    assert len([row for row in rows if "÷" in row or "RSS" in row]) == 3


def test_the_service_benchmark_runs_to_its_end_and_has_a_row_for_each_case() -> None:
    require(CHROMIUM)

    rows = rows_of("benchmarks.service", "--quick", "--letters", "500", "--repeats", "1", "--stores", "sqlite")

    asked = {read for reads in QUESTIONS.values() for read in reads}
    assert {*asked, *(case.name for case in copying.cases(500, store="SQLite"))} <= {*rows}
    goals = [row.partition(":")[0] for row in rows if ", ms" in row or ", kB" in row or "÷" in row]
    assert goals == [*["SQLite"] * 4, "CPU ÷ bare", "CPU ÷ bare"]


def test_the_service_benchmark_copies_on_postgresql_too() -> None:
    require(POSTGRES)
    flags = ("--quick", "--letters", "500", "--repeats", "1", "--stores", "postgres", "--only", "copying")

    rows = rows_of("benchmarks.service", *flags)

    assert {case.name for case in copying.cases(500, store="PostgreSQL")} <= {*rows}


def test_the_kafka_benchmark_runs_to_its_end_and_has_a_row_for_each_case() -> None:
    kafka_jars()

    rows = rows_of("benchmarks.kafka", "--scale", "0.0005", "--repeats", "1", "--only", "healthy,failing")

    assert {case.name for case in kafka_cases(("failing",), scale=0.0005, loop="asyncio")} <= {*rows}
    assert len([row for row in rows if "÷" in row]) == 2
