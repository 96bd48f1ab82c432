"""Results as Markdown: for the terminal, and as a section of docs/benchmarks.md that the next run replaces."""

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Spread

TITLE = """# Benchmarks

Written by `make bench-…`, never by hand. CPU per message is the figure to trust: it counts all threads of the process,
and other load on the machine moves it less than it moves rates. Every figure is the median of the repeats, with the
least and the most in brackets; the repeats of all rows are interleaved; each run is a process of its own.
"""


def number(value: float) -> str:
    """Three digits that count, and thousands apart: `0.0123`, `4.56`, `146,000`."""
    if abs(value) < 999.5:
        return f"{value:.3g}"
    digits = len(str(int(abs(value)))) - 3
    return f"{round(value, -digits):,.0f}"


def spread(values: Spread) -> str:
    """`4.56 (4.4 to 5.1)`; without the brackets if there is only one value."""
    if values.low == values.high:
        return number(values.median)
    return f"{number(values.median)} ({number(values.low)} to {number(values.high)})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table: the first column to the left, the others to the right."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def write_section(document: Path, name: str, text: str) -> None:
    """Put `text` under the heading `name`, in place of what stood there; the other sections stay as they are."""
    known = document.read_text(encoding="utf-8") if document.exists() else TITLE
    section = f"## {name}\n\n{text.strip()}\n"
    found = re.search(rf"^## {re.escape(name)}\n.*?(?=^## |\Z)", known, re.MULTILINE | re.DOTALL)
    if found is None:
        known = f"{known.rstrip()}\n\n{section}"
    else:
        rest = known[found.end() :]
        known = known[: found.start()] + section + ("\n" if rest else "") + rest
    document.write_text(known, encoding="utf-8")
