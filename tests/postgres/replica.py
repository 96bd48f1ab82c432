"""One of several processes at work on one store at the same time: `python -m tests.postgres.replica URL NUMBER`.

Says what it claimed and what it did, as JSON, when it is done. Begins when it is told to, by a line.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

from redrive.clock import SystemClock
from redrive.core.query import Query
from redrive.core.redrive import Planned
from redrive.core.stored import Claimed
from redrive.stores.sql import SqlStore
from redrive.testing.conformance.store.bench import AT, a_redrive, an_act, an_outcome, letter

LETTERS = 120
REPLICAS = 3
SHARED = "shared"
SECONDS = 20
NOTES = 20
NAMES = [f"l{number:03}" for number in range(LETTERS)]
_BATCH = 17


async def work(store: SqlStore, number: int) -> dict[str, Any]:
    """Take in what the others take in too, note, plan a redrive of everything, and claim what can be had."""
    random = Random(number)
    new = [await _collect(store, names) for names in _batches(random)]
    for name in random.sample(NAMES, NOTES):
        await store.note(name, f"seen by {number}", act=an_act("letters.note", who=f"replica {number}"))
    own = f"r{number}"
    rows = await store.select(Query(), limit=LETTERS)
    await _plan(store, own, {row.letter_id: row.life.version for row in rows})
    claimed = [*await _claim_all(store, own)]
    turns = await _take_turns(store, f"replica {number}")
    return {"new": sum(new), "claimed": [(one.letter_id, one.generation) for one in claimed], "turns": turns}


async def _collect(store: SqlStore, names: list[str]) -> int:
    letters = [letter(name, fingerprint=f"f{hash_of(name) % 7}", queue=f"q{hash_of(name) % 3}") for name in names]
    return (await store.collect(letters)).new


async def _plan(store: SqlStore, redrive_id: str, versions: dict[str, int]) -> None:
    items = [Planned(name, version) for name, version in versions.items()]
    await store.create(a_redrive(redrive_id, total=len(items)), items, act=an_act("letters.redrive"))


async def _claim_all(store: SqlStore, redrive_id: str) -> list[Claimed]:
    done: list[Claimed] = []
    while claimed := await store.claim(redrive_id, step=0, limit=_BATCH):
        done.extend(claimed)
        await store.sent(redrive_id, {one.letter_id: f"m-{one.letter_id}" for one in claimed}, at=AT)
        half = [an_outcome(one.letter_id, one.generation) for one in claimed[::2]]
        dead = [letter(one.letter_id, generation=one.generation, fingerprint="again") for one in claimed[1::2]]
        await store.collect(dead, half)
    return done


async def _take_turns(store: SqlStore, owner: str) -> list[int]:
    """The seconds in which we were the one redriver of the redrive that all share."""
    turns = []
    for second in range(SECONDS):
        now = AT + timedelta(seconds=second)
        if await store.take(SHARED, owner=owner, now=now, until=now + timedelta(seconds=1)):
            turns.append(second)
    return turns


def _batches(random: Random) -> Iterator[list[str]]:
    names = random.sample(NAMES, LETTERS)
    return (names[start : start + _BATCH] for start in range(0, LETTERS, _BATCH))


def hash_of(name: str) -> int:
    """The same in every process."""
    return int(name[1:])


async def main(url: str, number: int) -> None:
    store = SqlStore(url, clock=SystemClock())
    await store.stats()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    try:
        print(json.dumps(await work(store, number)), flush=True)
    finally:
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
