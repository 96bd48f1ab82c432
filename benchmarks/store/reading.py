"""What people ask of a store, at a given number of letters. Every question is asked many times, each time otherwise."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.store.load import HOURS, INCIDENTS, NOW, QUEUES, TYPES, letters
from redrive.clock import SystemClock
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.redrive import RedriveOutcome
from redrive.stores.sql import SqlStore

FLAT = (
    "list: queue and state",
    "list: queue alone",
    "list: incident and state",
    "list: error type and state",
    "list: state alone, in the middle",
    "list: user",
    "stats of all queues",
    "stats of one queue",
    "incidents, a page of 50",
    "one incident with its hours",
    "histogram of 30 days",
    "count: queue and state",
)
BUDGETED = (
    "list: queue, user and time",
    "list: reason and tenant, none there",
    "list: a word in one letter",
    "list: two characters, none there",
    "count: incident and time, capped",
)
_FILLED = 5000
_RESOLVED = 10  # of a hundred

Question = Callable[[SqlStore, Random], Awaitable[Any]]


def fill(path: str, size: int) -> dict[str, float]:
    """A file with so many letters, a tenth of them resolved, all texts indexed."""
    taken = asyncio.run(_fill(path, size))
    return taken | {"bytes": Path(path).stat().st_size / size}


async def _fill(path: str, size: int) -> dict[str, float]:
    store = SqlStore(path, clock=SystemClock())
    began = time.perf_counter()
    for first in range(0, size, _FILLED):
        some = [*letters(first, min(_FILLED, size - first), of=size)]
        await store.collect(some, [_success(one.letter_id) for one in some[:: 100 // _RESOLVED]])
    collected = time.perf_counter()
    while await store.tend():
        pass
    await store.aclose()
    indexed = time.perf_counter()
    return {"collecting": collected - began, "indexing": indexed - collected}


def _success(letter_id: str) -> RedriveOutcome:
    return RedriveOutcome(letter_id, 1, succeeded=True, reported_at=NOW, queue="", group="shop", message_id="")


def ask(paths: list[str], sizes: list[int], repeats: int) -> list[dict[str, list[float]]]:
    """How long each question took at each size, in seconds; the sizes by turns, so that other load meets all alike."""
    return asyncio.run(_ask(paths, sizes, repeats))


async def _ask(paths: list[str], sizes: list[int], repeats: int) -> list[dict[str, list[float]]]:
    stores = [SqlStore(path, clock=SystemClock()) for path in paths]
    asked = [_questions(size) for size in sizes]
    times: list[dict[str, list[float]]] = [{name: [] for name in questions} for questions in asked]
    for repeat in range(repeats + 3):
        for name in asked[0]:
            for store, questions, taken in zip(stores, asked, times, strict=True):
                began = time.perf_counter()
                await questions[name](store, Random(f"{repeat}{name}"))
                if repeat >= 3:
                    taken[name].append(time.perf_counter() - began)
    for store in stores:
        await store.aclose()
    return times


def _questions(size: int) -> dict[str, Question]:
    pick = Random.choice
    opened = LetterState.OPEN
    since = NOW - timedelta(hours=HOURS)
    day = timedelta(days=1)
    return {
        "list: queue and state": lambda s, r: s.find(Query(queue=pick(r, QUEUES), state=opened)),
        "list: queue alone": lambda s, r: s.find(Query(queue=pick(r, QUEUES))),
        "list: incident and state": lambda s, r: s.find(Query(fingerprint=_incident(r), state=opened)),
        "list: error type and state": lambda s, r: s.find(Query(error_type=pick(r, TYPES), state=opened)),
        "list: state alone, in the middle": lambda s, _: s.find(
            Query(state=LetterState.RESOLVED), after=str(size // 2)
        ),
        "list: user": lambda s, r: s.find(Query(user_id=f"user-{r.randrange(5000)}")),
        "stats of all queues": lambda s, _: s.stats(),
        "stats of one queue": lambda s, r: s.stats(pick(r, QUEUES)),
        "incidents, a page of 50": lambda s, _: s.incidents(),
        "one incident with its hours": lambda s, r: s.incident(_incident(r)),
        "histogram of 30 days": lambda s, _: s.arrivals(since=since),
        "count: queue and state": lambda s, r: s.count(Query(queue=pick(r, QUEUES), state=opened)),
        "list: queue, user and time": lambda s, r: s.find(
            Query(queue=pick(r, QUEUES), user_id=f"user-{r.randrange(5000)}", to_at=NOW - day)
        ),
        "list: reason and tenant, none there": lambda s, _: s.find(Query(reason=None, tenant_id="nobody")),
        "list: a word in one letter": lambda s, r: s.find(Query(text=f'"order": {r.randrange(size)},')),
        "list: two characters, none there": lambda s, _: s.find(Query(text="\N{SNOWMAN}\N{SNOWMAN}")),
        "count: incident and time, capped": lambda s, r: s.count(Query(fingerprint=_incident(r), to_at=NOW - day)),
    }


def _incident(random: Random) -> str:
    return f"{random.randrange(INCIDENTS):016x}"
