"""The audit records of an act: one for the operation, one for each letter it touched, each chained to the last."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from datetime import UTC
from typing import Any, NamedTuple

from redrive.core.access import Token
from redrive.core.audit import Act, AuditRecord, Sealer

Line = tuple[Any, ...]
"""A record by place, in the order of its fields."""

NAMES = tuple(field.name for field in fields(AuditRecord))


class Touched(NamedTuple):
    """A letter that an act changed: hashes of what would be sent back, before and after, and what else to know."""

    letter_id: str
    before_sha256: str = ""
    after_sha256: str = ""
    detail: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it


class Link(NamedTuple):
    """The end of the chain."""

    seq: int = 0
    hash: str = ""


def records_of(act: Act, touched: Iterable[Touched], *, behind: Link, count: int | None) -> Iterator[AuditRecord]:
    """The records of an act behind the end of the chain. Without a `count` the operation has its record already."""
    lines = lines_of(act, touched, behind=behind, count=count)
    return (AuditRecord(**dict(zip(NAMES, line, strict=True))) for line in lines)


def lines_of(act: Act, touched: Iterable[Touched], *, behind: Link, count: int | None) -> Iterator[Line]:
    """The same as `NAMES` has them: for many letters at once."""
    at = act.at.astimezone(UTC)  # as every store gives it back: it is part of the hash
    sealer = Sealer(act, at=at)
    shared = (at, act.who, act.verb, act.operation_id)
    seq, previous = behind
    if count is not None:
        seq += 1
        sealed = sealer.of_operation(seq, count=count, previous_hash=previous)
        yield (seq, *shared, "", act.selection, count, "", "", act.detail, previous, sealed)
        previous = sealed
    for name, before, after, detail in touched:
        seq += 1
        sealed = sealer.of_letter(seq, name, before, after, detail, previous_hash=previous)
        yield (seq, *shared, name, "", None, before, after, detail, previous, sealed)
        previous = sealed


def about_token(act: Act, token: Token) -> Act:
    """The act, saying which token it is about: all that is known of it, which is never its secret."""
    told = {"token": token.token_id, "name": token.name, "role": token.role.value}
    ends = {} if token.expires_at is None else {"expires_at": token.expires_at.isoformat()}
    return replace(act, detail=act.detail | told | ends)
