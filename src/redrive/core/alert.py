"""An alert: what is told to people about an incident or a queue, in time."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

SEVERAL: Final = "several"


class Rule(StrEnum):
    """Why somebody is told."""

    NEW_INCIDENT = "new_incident"
    RELAPSE = "relapse"
    GROWTH = "growth"
    THRESHOLD = "threshold"
    SIZE = "size"
    AGE = "age"
    TEST = "test"

    @property
    def is_of_incident(self) -> bool:
        """Whether it speaks of an incident; else of a queue, or of nothing."""
        return self in (Rule.NEW_INCIDENT, Rule.RELAPSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An incident, or what a rule has found about a queue, as it is told: it goes on until `ended_at` is known.

    `open` of its `total` letters are neither resolved nor discarded. `began_at` is when the letter died that opened the
    incident this time, or when the rule was broken. `said` is what a rule about a queue has found, in words. `link` is
    where people look at it, if anywhere. There is no text of an error in it: that may hold what is none of the
    receivers' business.
    """

    rule: Rule = Rule.NEW_INCIDENT
    incident_id: str = ""
    error_type: str = ""
    queues: tuple[str, ...] = ()
    open: int = 0
    total: int = 0
    said: str = ""
    relapses: int = 0
    began_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    link: str = ""

    @property
    def key(self) -> str:
        """What it is about: an alert goes on as long as one with its key is found."""
        return f"incident:{self.incident_id}" if self.rule.is_of_incident else f"{self.rule}:{self.queue}"

    @property
    def spell(self) -> str:
        """One time that it goes on: a relapse is another."""
        return f"{self.key} {self.relapses}"

    @property
    def queue(self) -> str:
        """The queue, if it is one."""
        return self.queues[0] if len(self.queues) == 1 else SEVERAL

    @property
    def headline(self) -> str:
        """What has happened, in one line. Names in it are strangers' text."""
        if not self.rule.is_of_incident:
            return self.said
        again = " again" if self.rule is Rule.RELAPSE else ""
        return f"{self.error_type or 'A failure'} in {self.queue}{again}: {self.open:,} open letters"
