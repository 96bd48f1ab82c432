"""Retention: how long letters are kept, per state and queue. Without rules nothing is purged."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.triage import letters
from redrive.triage.desk import Desk


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Letters of this state and queue are removed when they failed longer ago than this; None means any."""

    older_than: timedelta
    state: LetterState | None = None
    queue: str | None = None

    def query(self) -> Query:
        """The letters it speaks of."""
        return Query(states=(self.state,) if self.state else (), queue=self.queue)


class Kept(NamedTuple):
    """A rule, and what it would remove or has removed."""

    rule: Rule
    purge: letters.Purge


async def preview(desk: Desk, rules: Sequence[Rule]) -> list[Kept]:
    """What each rule would remove now. A letter that two rules speak of is counted by both."""
    return [Kept(rule, await letters.purge_preview(desk, rule.query(), older_than=rule.older_than)) for rule in rules]


async def apply(desk: Desk, rules: Sequence[Rule]) -> list[Kept]:
    """Remove what the rules say, one after the other; each is an operation in the audit."""
    return [Kept(rule, await letters.purge(desk, rule.query(), older_than=rule.older_than)) for rule in rules]
