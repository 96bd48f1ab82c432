"""Who did what to which letters: append-only, each record chained to the one before it by a hash."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import uuid4


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One operation by one person or process. Every change in a store is made by an act."""

    who: str
    verb: str  # letters.discard, letters.redrive, incidents.note …
    at: datetime
    operation_id: str = field(default_factory=lambda: uuid4().hex[:12])
    selection: str = ""  # the filter in words, for bulk work
    count: int | None = None  # how many letters it is about, if more than one call of the store makes it
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One line of the audit: one per operation (`letter_id` empty), and one per letter it touched."""

    seq: int
    at: datetime
    who: str
    verb: str
    operation_id: str
    letter_id: str = ""
    selection: str = ""
    count: int | None = None
    before_sha256: str = ""
    after_sha256: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    previous_hash: str = ""
    hash: str = ""


_FACTS = tuple(field.name for field in fields(AuditRecord) if field.name != "hash")
_canonical = json.JSONEncoder(sort_keys=True, default=str).encode


def linked(facts: Mapping[str, Any]) -> AuditRecord:
    """The record of these facts: every field but the hash, which follows from them."""
    return AuditRecord(**facts, hash=_hash(facts))


def chained(record: AuditRecord, *, previous_hash: str) -> str:
    """The hash of a record behind the one with `previous_hash`: over every field but the hash itself."""
    return _hash({name: getattr(record, name) for name in _FACTS} | {"previous_hash": previous_hash})


def _hash(facts: Mapping[str, Any]) -> str:
    said = {**facts, "at": facts["at"].isoformat()}
    return hashlib.sha256(_canonical(said).encode()).hexdigest()


def first_broken(records: Iterable[AuditRecord]) -> AuditRecord | None:
    """The first record that does not follow from those before it, in order of `seq`; None if the chain holds.

    A changed field, a removed row in the middle and a row put in between are all found; rows cut off the end are
    found only by comparing with a hash noted elsewhere.
    """
    previous = ""
    for record in records:
        if record.previous_hash != previous or record.hash != chained(record, previous_hash=previous):
            return record
        previous = record.hash
    return None
