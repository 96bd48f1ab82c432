"""What people ask of a store, at a given number of letters. Every question is asked many times, each time otherwise."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from random import Random
from typing import Any

from benchmarks.store.load import HOURS, INCIDENTS, NOW, QUEUES, RESOLVED, TYPES, letters, success
from redrive.clock import SystemClock
from redrive.core.audit import Act
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.core.redrive import Planned, Redrive, RedriveState
from redrive.stores.sql import SqlStore

FLAT = (
    "list: queue and state",
    "list: queue alone",
    "list: incident and state",
    "list: error type and state",
    "list: state alone, in the middle",
    "list: several states",
    "list: queue and several states",
    "list: user",
    "list: user and several states",
    "list: entry of a DLQ, queue and states",
    "stats of all queues",
    "stats of all queues, several states",
    "stats of one queue",
    "incidents, a page of 50",
    "one incident with its hours",
    "30 days by hour and reason",
    "30 days by hour and error type",
    "30 days by hour, a queue's error types",
    "news, a page of 100",
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
_SENT = 5000
REDRIVE_ID = "0123456789ab"

Question = Callable[[SqlStore, Random], Awaitable[Any]]


def fill(place: str, size: int) -> dict[str, float]:
    """A store with so many letters, every tenth of them resolved, all texts indexed; how many seconds it took.

    There is a redrive that has ended, of the first 5,000 that are resolved: it found them so, and skipped them.
    """
    return asyncio.run(_fill(place, size))


async def _fill(place: str, size: int) -> dict[str, float]:
    store = SqlStore(place, clock=SystemClock())
    began = time.perf_counter()
    for first in range(0, size, _FILLED):
        some = [*letters(first, min(_FILLED, size - first), of=size)]
        await store.collect(some, [success(one.letter_id) for one in some[::RESOLVED]])
    collected = time.perf_counter()
    await _redrive(store, [one.letter_id for one in islice(letters(0, size, of=size), 0, _SENT * RESOLVED, RESOLVED)])
    while await store.tend():
        pass
    await store.aclose()
    indexed = time.perf_counter()
    return {"collecting": collected - began, "indexing": indexed - collected}


async def _redrive(store: SqlStore, letter_ids: Sequence[str]) -> None:
    act = Act(who="benchmark", verb="letters.redrive", at=NOW)
    redrive = Redrive(
        redrive_id=REDRIVE_ID, created_at=NOW, by=act.who, selection="state=open", total=len(letter_ids), steps=(1, 5)
    )
    items = [Planned(name, 1, min(place, 2)) for place, name in enumerate(letter_ids)]
    await store.create(redrive, items, act=act)
    for step in range(3):
        await store.claim(REDRIVE_ID, step=step, limit=_SENT)
    await store.mark(REDRIVE_ID, RedriveState.DONE, why="", act=replace(act, verb="redrives.end"))


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
    opened = (LetterState.OPEN,)
    waiting = (LetterState.OPEN, LetterState.PARKED)
    since = NOW - timedelta(hours=HOURS)
    day = timedelta(days=1)
    return {
        "list: queue and state": lambda s, r: s.find(Query(queue=pick(r, QUEUES), states=opened)),
        "list: queue alone": lambda s, r: s.find(Query(queue=pick(r, QUEUES))),
        "list: incident and state": lambda s, r: s.find(Query(fingerprint=_incident(r), states=opened)),
        "list: error type and state": lambda s, r: s.find(Query(error_type=pick(r, TYPES), states=opened)),
        "list: state alone, in the middle": lambda s, _: s.find(
            Query(states=(LetterState.RESOLVED,)), after=str(size // 2)
        ),
        "list: several states": lambda s, _: s.find(Query(states=waiting), after=str(size // 2)),
        "list: queue and several states": lambda s, r: s.find(Query(queue=pick(r, QUEUES), states=waiting)),
        "list: user": lambda s, r: s.find(Query(user_id=f"user-{r.randrange(5000)}")),
        "list: user and several states": lambda s, r: s.find(
            Query(user_id=f"user-{r.randrange(5000)}", states=waiting)
        ),
        "list: entry of a DLQ, queue and states": lambda s, r: s.find(
            Query(dlq_entry_id=f"{r.randrange(size)}-0", queue=pick(r, QUEUES), states=waiting)
        ),
        "stats of all queues": lambda s, _: s.stats(),
        "stats of all queues, several states": lambda s, _: s.stats(states=waiting),
        "stats of one queue": lambda s, r: s.stats(pick(r, QUEUES)),
        "incidents, a page of 50": lambda s, _: s.incidents(),
        "one incident with its hours": lambda s, r: s.incident(_incident(r)),
        "30 days by hour and reason": lambda s, _: s.trends(since=since, by="reason"),
        "30 days by hour and error type": lambda s, _: s.trends(since=since, by="error_type"),
        "30 days by hour, a queue's error types": lambda s, r: s.trends(
            since=since, queue=pick(r, QUEUES), by="error_type"
        ),
        "news, a page of 100": lambda s, r: s.news(after=str(r.randrange(size))),
        "count: queue and state": lambda s, r: s.count(Query(queue=pick(r, QUEUES), states=opened)),
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
