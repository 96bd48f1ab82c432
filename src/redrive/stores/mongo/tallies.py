"""Counts that are kept, and incidents: written with the letters that make them true."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from redrive.core.stored import IncidentRow
from redrive.stores.exact import instant, microseconds, unescaped
from redrive.stores.ledger import Ledger
from redrive.stores.memory.incidents import changed
from redrive.stores.mongo.documents import Document
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import DEATHS, INCIDENTS, TALLIES
from redrive.stores.mongo.values import from_maybe, key_of, texts, to_text

_STATE = ("queue", "state", "error_type", "reason")
_DEATH = ("dimension", "name", "queue")


async def write(draft: Draft, ledger: Ledger) -> int:
    """Add the deltas; how many incidents were opened by them, for the first time or again."""
    states = {key_of(*key): (dict(zip(_STATE, texts(key), strict=True)), n) for key, n in ledger.states.items() if n}
    await _add(draft, TALLIES, states)
    await _add(draft, DEATHS, _by_dimension(ledger))
    return await _tell(draft, ledger)


async def _add(draft: Draft, part: str, more: Mapping[str, tuple[Document, int]]) -> None:
    found = {one["_id"]: one["n"] for one in await draft.shelves.among(part, "_id", [*more], fields={"n": 1})}
    for name, (document, number) in more.items():
        if name in found:
            draft.set(part, name, {"n": found[name] + number})
        else:
            draft.add(part, {"_id": name, **document, "n": number})


def _by_dimension(ledger: Ledger) -> dict[str, tuple[Document, int]]:
    counts: Counter[tuple[str, int, str, str]] = Counter()
    for death, number in ledger.deaths.items():
        for dimension in ("reason", "error_type", "error_code"):
            counts[dimension, microseconds(death.hour) or 0, getattr(death, dimension), death.queue] += number
    found = {}
    for key, number in counts.items():
        dimension, hour, name, queue = key
        document = {**dict(zip(_DEATH, texts((dimension, name, queue)), strict=True)), "hour": hour}
        found[key_of(*key)] = (document, number)
    return found


async def _tell(draft: Draft, ledger: Ledger) -> int:
    names = {to_text(fingerprint): fingerprint for fingerprint in ledger.incidents}
    found = await draft.shelves.among(INCIDENTS, "_id", [*names])
    known = {one["_id"]: to_incident(one) for one in found}
    opened = 0
    for name, fingerprint in names.items():
        before, delta = known.get(name), ledger.incidents[fingerprint]
        after = changed(before, fingerprint, delta)
        if after is None or after == before:
            continue
        opened += after.state == "open" and (before is None or before.state == "resolved")
        put_incident(draft, before, after)
    return opened


def put_incident(draft: Draft, before: IncidentRow | None, after: IncidentRow) -> None:
    """Keep an incident as it is now."""
    error_type, error_message, state, note, assignee = texts(
        (after.error_type, after.error_message, after.state, after.note, after.assignee)
    )
    document = {
        "state": state,
        "error_type": error_type,
        "error_message": error_message,
        "open": after.open,
        "total": after.total,
        "first_at": microseconds(after.first_at),
        "last_at": microseconds(after.last_at),
        "queues": texts(after.queues),
        "note": note,
        "assignee": assignee,
        "relapses": after.relapses,
        "muted_until": microseconds(after.muted_until),
    }
    name = to_text(after.fingerprint)
    hours = {str(microseconds(hour)): number for hour, number in after.hours}
    if before is None:
        draft.add(INCIDENTS, {"_id": name, **document, "hours": hours})
        return
    had = {str(microseconds(hour)): number for hour, number in before.hours}
    later = {f"hours.{hour}": number for hour, number in hours.items() if had.get(hour) != number}
    draft.set(INCIDENTS, name, document | later)


def to_incident(document: Mapping[str, Any]) -> IncidentRow:
    """The incident that is kept so; without its hours, if they were not read."""
    name = unescaped(document["_id"])
    hours = sorted((int(hour), number) for hour, number in document.get("hours", {}).items())
    return IncidentRow(
        incident_id=name,
        fingerprint=name,
        error_type=unescaped(document["error_type"]),
        error_message=unescaped(document["error_message"]),
        open=document["open"],
        total=document["total"],
        first_at=instant(document["first_at"]),
        last_at=instant(document["last_at"]),
        queues=tuple(sorted(map(unescaped, document["queues"]))),
        state=document["state"],
        note=unescaped(document["note"]),
        assignee=unescaped(document["assignee"]),
        hours=tuple((instant(hour), number) for hour, number in hours),
        relapses=document.get("relapses", 0),
        muted_until=from_maybe(document.get("muted_until")),
    )
