from pathlib import Path

import pytest

from benchmarks import markdown
from benchmarks.measure import Spread


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.01234, "0.0123"), (4.5678, "4.57"), (80, "80"), (999.6, "1,000"), (146_096, "146,000")],
)
def test_a_number_has_three_digits_that_count(value: float, shown: str) -> None:
    assert markdown.number(value) == shown


def test_a_spread_is_shown_with_its_ends_in_brackets() -> None:
    assert markdown.spread(Spread(4.5, 4.0, 5.25)) == "4.5 (4 to 5.25)"


def test_a_table_has_a_line_per_row_and_keeps_bars_out_of_its_cells() -> None:
    assert markdown.table(["case", "µs"], [["a|b", "1"], ["c", "2"]]).splitlines() == [
        "| case | µs |",
        "| --- | --: |",
        r"| a\|b | 1 |",
        "| c | 2 |",
    ]


def test_a_section_replaces_itself_and_leaves_the_others_alone(tmp_path: Path) -> None:
    document = tmp_path / "benchmarks.md"
    markdown.write_section(document, "SQLite", "old\n\n### Deeper\n\nold")
    markdown.write_section(document, "Redis", "redis")
    markdown.write_section(document, "SQLite", "new")
    text = document.read_text(encoding="utf-8")

    assert text.startswith("# Benchmarks\n")
    assert text.endswith("\n\n## SQLite\n\nnew\n\n## Redis\n\nredis\n")
    assert "old" not in text
