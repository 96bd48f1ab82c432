"""Counting again what is kept in numbers: for a store whose letters somebody has removed or changed by hand."""

from collections import Counter
from dataclasses import replace

from redrive.core.stored import Recount
from redrive.stores.exact import unescaped
from redrive.stores.mongo.documents import SPOT, to_spot
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import CHUNK, INCIDENTS, LETTERS, TALLIES, UP
from redrive.stores.mongo.tallies import put_incident, to_incident
from redrive.stores.mongo.values import key_of, texts

_STATE = ("queue", "state", "error_type", "reason")


async def recount(draft: Draft) -> Recount:
    """Count every letter, and mend the tallies of states and the open and total letters of incidents.

    Deaths stay as they are: they are history, and letters that are gone have died too.
    """
    states: Counter[tuple[str, ...]] = Counter()
    total: Counter[str] = Counter()
    unsettled: Counter[str] = Counter()
    last = 0
    while found := await draft.shelves.many(
        LETTERS, {"_id": {"$gt": last}}, fields=SPOT, order=[("_id", UP)], limit=CHUNK
    ):
        for spot in map(to_spot, found):
            states[spot[:4]] += 1
            total[spot.fingerprint] += 1
            unsettled[spot.fingerprint] += not spot.state.settled
        last = found[-1]["_id"]
    mended = await _mend_tallies(draft, states) + await _mend_incidents(draft, total, unsettled)
    return Recount(total.total(), mended)


async def _mend_tallies(draft: Draft, states: Counter[tuple[str, ...]]) -> int:
    mended = 0
    left = {key_of(*key): (key, number) for key, number in states.items()}
    for one in await draft.shelves.many(TALLIES, {}):
        _, number = left.pop(one["_id"], ((), 0))
        if one["n"] != number:
            draft.set(TALLIES, one["_id"], {"n": number})
            mended += 1
    for name, (key, number) in left.items():
        draft.add(TALLIES, {"_id": name, **dict(zip(_STATE, texts(key), strict=True)), "n": number})
    return mended + len(left)


async def _mend_incidents(draft: Draft, total: Counter[str], unsettled: Counter[str]) -> int:
    mended = 0
    for one in await draft.shelves.many(INCIDENTS, {}, fields={"hours": 0}):
        name, row = unescaped(one["_id"]), to_incident(one)
        after = replace(row, open=unsettled[name], total=total[name])
        if after.state == "open" and not after.open:
            after = replace(after, state="resolved")
        if after != row:
            put_incident(draft, row, after)
            mended += 1
    return mended
