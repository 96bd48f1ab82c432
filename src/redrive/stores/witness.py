"""The audit records of an act: one for the operation, one for each letter it touched, each chained to the last."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Any, NamedTuple

from redrive.core.access import Token
from redrive.core.audit import Act, AuditRecord, linked


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
    # In UTC, as every store gives it back: it is part of the hash.
    shared = {"at": act.at.astimezone(UTC), "who": act.who, "verb": act.verb, "operation_id": act.operation_id}
    told: dict[str, Any] = {
        "letter_id": "",
        "selection": "",
        "count": None,
        "before_sha256": "",
        "after_sha256": "",
        "detail": {},
    }
    every = [] if count is None else [{"selection": act.selection, "count": count, "detail": act.detail}]
    seq, previous = behind
    for facts in (*every, *map(_facts, touched)):
        seq += 1
        record = linked({**shared, **told, **facts, "seq": seq, "previous_hash": previous})
        previous = record.hash
        yield record


def _facts(touched: Touched) -> dict[str, Any]:
    return {
        "letter_id": touched.letter_id,
        "before_sha256": touched.before_sha256,
        "after_sha256": touched.after_sha256,
        "detail": touched.detail,
    }


def about_token(act: Act, token: Token) -> Act:
    """The act, saying which token it is about: all that is known of it, which is never its secret."""
    told = {"token": token.token_id, "name": token.name, "role": token.role.value}
    ends = {} if token.expires_at is None else {"expires_at": token.expires_at.isoformat()}
    return replace(act, detail=act.detail | told | ends)
