"""Who did what to which letters: append-only, each record chained to the one before it by a hash."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from json.encoder import encode_basestring_ascii as _quoted
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


def chained(record: AuditRecord, *, previous_hash: str) -> str:
    """The hash of a record behind the one with `previous_hash`: over every field but the hash itself."""
    return _hash({name: getattr(record, name) for name in _FACTS} | {"previous_hash": previous_hash})


class Sealer:
    """Gives the hashes of the records of one act, as `chained` does: what they have in common is put into JSON once.

    `at` is the act's time as records have it. Details of many letters are best one and the same object.
    """

    def __init__(self, act: Act, *, at: datetime) -> None:
        said = {"at": at.isoformat(), "operation_id": act.operation_id, "verb": act.verb, "who": act.who}
        self._act, self._at, self._said = act, at, {name: _quoted(value) for name, value in said.items()}
        self._detail: tuple[object, str] = (None, "null")

    def of_operation(self, seq: int, *, count: int | None, previous_hash: str) -> str:
        """The hash of the record of the operation as a whole."""
        act = self._act
        facts = {
            "at": self._at,
            "who": act.who,
            "verb": act.verb,
            "operation_id": act.operation_id,
            "detail": act.detail,
        }
        none = {"letter_id": "", "before_sha256": "", "after_sha256": ""}
        chain = {"seq": seq, "previous_hash": previous_hash}
        return _hash({**facts, **none, **chain, "selection": act.selection, "count": count})

    def of_letter(
        self, seq: int, letter_id: str, before: str, after: str, detail: dict[str, Any], *, previous_hash: str
    ) -> str:
        """The hash of the record of one letter: names in their order, as JSON has them."""
        if detail is not self._detail[0]:
            self._detail = detail, _canonical(detail)
        said = self._said
        text = (
            f'{{"after_sha256": {_quoted(after)}, "at": {said["at"]}, "before_sha256": {_quoted(before)}, '
            f'"count": null, "detail": {self._detail[1]}, "letter_id": {_quoted(letter_id)}, '
            f'"operation_id": {said["operation_id"]}, "previous_hash": "{previous_hash}", "selection": "", '
            f'"seq": {seq}, "verb": {said["verb"]}, "who": {said["who"]}}}'
        )
        return hashlib.sha256(text.encode()).hexdigest()


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
