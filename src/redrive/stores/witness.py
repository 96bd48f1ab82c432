"""The audit records of an act: one for the operation, one for each letter it touched, each chained to the last."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Any, NamedTuple

from redrive.core.audit import Act, AuditRecord, chained


@dataclass(frozen=True, slots=True)
class Touched:
    """A letter that an act changed: hashes of what would be sent back, before and after, and what else to know."""

    letter_id: str
    before_sha256: str = ""
    after_sha256: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


class Link(NamedTuple):
    """The end of the chain."""

    seq: int = 0
    hash: str = ""


def records_of(act: Act, touched: Iterable[Touched], *, behind: Link, count: int | None) -> Iterator[AuditRecord]:
    """The records of an act behind the end of the chain. Without a `count` the operation has its record already."""
    link = behind
    if count is not None:
        record = _linked(_bare(act, selection=act.selection, count=count, detail=act.detail), link)
        link = Link(record.seq, record.hash)
        yield record
    for one in touched:
        bare = _bare(act, letter_id=one.letter_id, before_sha256=one.before_sha256, after_sha256=one.after_sha256)
        record = _linked(replace(bare, detail=one.detail), link)
        link = Link(record.seq, record.hash)
        yield record


def _bare(act: Act, **values: Any) -> AuditRecord:
    at = act.at.astimezone(UTC)  # as every store gives it back: it is part of the hash
    return AuditRecord(seq=0, at=at, who=act.who, verb=act.verb, operation_id=act.operation_id, **values)


def _linked(record: AuditRecord, behind: Link) -> AuditRecord:
    placed = replace(record, seq=behind.seq + 1, previous_hash=behind.hash)
    return replace(placed, hash=chained(placed, previous_hash=behind.hash))
