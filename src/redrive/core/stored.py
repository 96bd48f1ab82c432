"""What a store hands out: letters as they are kept and listed, incidents, counts, pages of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from redrive.core.letter import DeadLetter
from redrive.core.life import Life
from redrive.core.message import Headers
from redrive.core.redrive import RedriveOutcome

Row = TypeVar("Row")

Dimension = Literal["queue", "error_type", "error_code", "reason"]
"""What deaths are counted by."""

INCIDENT_STATES = ("open", "muted", "resolved")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows in order, and the cursor of the next page; None at the end. Pages are by key, never by offset."""

    rows: Sequence[Row]
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """How many there are; `capped` means at least so many: shown as "10,000+"."""

    number: int
    capped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterRow:
    """A letter in a list: without payload, headers, context and attempts. `life` has its state and version."""

    letter_id: str
    life: Life
    kind: str
    broker: str
    queue: str
    group: str
    reason: str
    error_type: str
    error_message: str
    error_code: str | None
    fingerprint: str
    retry_count: int
    failed_at: datetime
    original_message_id: str
    user_id: str | None = None
    tenant_id: str | None = None
    app_version: str = ""
    dlq_entry_id: str = ""
    note: str = ""


class Selected(NamedTuple):
    """A letter of a selection: what a preview says of it and a redrive freezes, and no more. There may be many.

    One that was named and keeps nothing to send back is not `sendable`; of a filter's letters that shows later.
    """

    letter_id: str
    failed_at: datetime
    life: Life
    broker: str
    queue: str
    group: str
    error_type: str
    app_version: str
    sendable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What a person changed before sending a letter back; the original stays as it was."""

    body: bytes
    headers: Headers
    by: str
    edited_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLetter:
    """One letter whole. `letter` is as it died last, its attempts over all generations; `edits` oldest first."""

    letter: DeadLetter
    life: Life
    note: str = ""
    edits: Sequence[Edit] = ()
    outcomes: Sequence[RedriveOutcome] = ()
    redrive_ids: Sequence[str] = ()

    @property
    def size(self) -> int:
        """About how many bytes it has: what of it may be large."""
        letter = self.letter
        headers = sum(len(value) for _, value in letter.headers)
        return len(letter.payload or b"") + len(letter.key or b"") + headers + sum(len(one.body) for one in self.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Exact counts, over one queue or all, and over some states or all."""

    total: int
    by_state: Mapping[str, int]
    by_error_type: Mapping[str, int]
    by_reason: Mapping[str, int]
    by_queue: Mapping[str, int]
    oldest_at: datetime | None
    newest_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRow:
    """Letters that died last with one fingerprint, as the store keeps count of them. `incident_id` is the fingerprint.

    `open` are those neither resolved nor discarded: at 0 an open incident is resolved by itself, and a new or reopened
    letter opens a resolved one again: `relapses` says how often. A muted one stays muted; whoever tells people opens it
    when `muted_until` has passed. `hours` are (hour, deaths), oldest first.
    """

    incident_id: str
    fingerprint: str
    error_type: str
    error_message: str
    open: int
    total: int
    first_at: datetime
    last_at: datetime
    queues: Sequence[str]
    state: str = "open"  # open, muted or resolved
    note: str = ""
    assignee: str = ""
    hours: Sequence[tuple[datetime, int]] = ()
    relapses: int = 0
    muted_until: datetime | None = None  # for a muted one: until somebody opens it, if None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentChange:
    """What a person changes about an incident; None leaves it. Raises `ValueError` for a state that is none.

    `muted_until` belongs to the state `muted`: it is set with the state, and goes with it.
    """

    note: str | None = None
    assignee: str | None = None
    state: str | None = None
    muted_until: datetime | None = None

    def __post_init__(self) -> None:
        if self.state not in (None, *INCIDENT_STATES):
            raise ValueError(f"state: expected one of {', '.join(INCIDENT_STATES)}, got {self.state!r}")
        if self.muted_until is not None and self.state != "muted":
            raise ValueError(f"muted_until: expected the state muted, got {self.state!r}")

    def given(self) -> dict[str, Any]:
        """What is changed, by the name of the field."""
        names = ("note", "assignee", "state")
        found = {name: value for name in names if (value := getattr(self, name)) is not None}
        return found if self.state is None else {**found, "muted_until": self.muted_until}

    def said(self) -> dict[str, str]:
        """What is changed, as the audit says it."""
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in self.given().items()
            if value is not None
        }


@dataclass(frozen=True, slots=True)
class Collected:
    """What collecting did: letters seen for the first time, reopened, resolved; the rest was known already.

    `incidents` were opened by it, for the first time or again. Two processes that open one at the same instant may both
    say so.
    """

    new: int = 0
    reopened: int = 0
    resolved: int = 0
    known: int = 0
    incidents: int = field(default=0, compare=False)

    def __add__(self, more: "Collected") -> "Collected":
        return Collected(
            self.new + more.new,
            self.reopened + more.reopened,
            self.resolved + more.resolved,
            self.known + more.known,
            self.incidents + more.incidents,
        )


class Claimed(NamedTuple):
    """A letter whose next generation is spent and which is to be published: the original, or its latest edit."""

    letter_id: str
    generation: int
    step: int
    broker: str
    queue: str
    group: str
    body: bytes | None
    headers: Headers = ()
    key: bytes | None = None
    origin: str = ""
    edits: int = 0


@dataclass(frozen=True, slots=True)
class Recount:
    """How many letters were counted, and how many numbers were wrong."""

    letters: int
    mended: int
