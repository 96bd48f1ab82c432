"""The table that a run is reported with."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from tests.crash.campaign import Result
from tests.crash.checker import RAW, ZEROS
from tests.crash.way_back import Result as WayBackResult
from tests.crash.way_back_checker import ZEROS as RETURN_ZEROS

EXAMPLES = 5


def table(results: Sequence[Result]) -> str:
    """What was sent, what was done to it, and what must be zero, summed up over all runs."""
    shown: Counter[str] = Counter()
    zeros: Counter[str] = Counter()
    for result in results:
        shown.update(result.verdict.shown)
        zeros.update({name: len(found) for name, found in result.verdict.zeros.items()})
    seeds = ", ".join(str(result.scenario.seed) for result in results)
    lines = [
        f"{results[0].adapter.version}, redrive {version('redrive')}, Python {platform.python_version()}",
        f"{len(results)} run{'s'[: len(results) > 1]}, seed {seeds}, {sum(one.seconds for one in results):.0f} s",
        "",
        *_ends(shown),
        "",
        *(f"{count:>8}  {kind.removeprefix('fault: ')}" for kind, count in shown.items() if kind.startswith("fault: ")),
        f"{shown['starts']:>8}  handler runs, {shown['re-executions']} of them for messages that were done already",
        f"{shown['fenced']:>8}  deliveries refused to their worker, because they had passed to another one",
        *(f"{count:>8}  {name}" for name, count in shown.items() if name == RAW),
        "",
        *(f"{zeros[name]:>8}  {name}: {meaning}" for name, meaning in ZEROS.items()),
        "",
        _bound(zeros["lost"], shown["acknowledged"]),
        *_examples(results),
    ]
    return "\n".join(lines)


def _ends(shown: Mapping[str, int]) -> list[str]:
    ends = ("done", "dead", "left")
    missing = shown["acknowledged"] + shown["unknown, seen"] - sum(shown[end] for end in ends)
    arrived = f"{shown['unknown']} of unknown fate: {shown['unknown, seen']} arrived"
    return [
        f"{shown['sent']:>8}  sent: {shown['acknowledged']} acknowledged, {arrived}",
        f"{sum(shown[end] for end in ends):>8}  accounted for: {', '.join(f'{shown[end]} {end}' for end in ends)}",
        f"{missing:>8}  missing",
    ]


def _bound(lost: int, count: int) -> str:
    if lost or not count:
        return f"lost: {lost} of {count}"
    return f"lost: 0 of {count}; 95 % upper bound 3/{count} = {3 / count:.2e}"


def _examples(results: Sequence[Result]) -> list[str]:
    return [
        f"RED  seed {result.scenario.seed}: {name}: {', '.join(found[:EXAMPLES])}"
        for result in results
        for name, found in result.verdict.zeros.items()
        if found
    ]


def return_table(results: Sequence[WayBackResult]) -> str:
    """What was sent back, how often its redriver was killed, and what must be zero, summed up over all runs."""
    shown: Counter[str] = Counter()
    zeros: Counter[str] = Counter()
    for result in results:
        shown.update(result.verdict.shown)
        zeros.update({name: len(found) for name, found in result.verdict.zeros.items()})
    seeds = ", ".join(str(result.scenario.seed) for result in results)
    seconds = ", ".join(f"{result.seconds:.0f}" for result in results)
    lines = [
        results[0].adapter.version,
        f"{len(results)} way{'s'[: len(results) > 1]} back, seed {seeds}, {seconds} s",
        "",
        *(f"{number:>8}  {name.removeprefix('fault: ')}" for name, number in shown.items()),
        "",
        *(f"{zeros[name]:>8}  {name}: {meaning}" for name, meaning in RETURN_ZEROS.items()),
        *(
            f"RED  seed {result.scenario.seed}: {name}: {', '.join(found[:EXAMPLES])}"
            for result in results
            for name, found in result.verdict.zeros.items()
            if found
        ),
    ]
    return "\n".join(lines)
