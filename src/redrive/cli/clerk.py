"""What commands ask for, by noun. Two answer: a store that the command opens itself, and a service, over its API.

Whoever answers makes the act that goes on record: at a store in the name of the system's user, at a service in that of
the token. Each raises Redrive's own errors: `LetterNotFound`, `StateConflict`, `NotAllowed`, `StoreUnavailable`, and
`ConfigError` with every mistake.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from redrive.core.access import Role, Token
from redrive.core.audit import AuditRecord
from redrive.core.message import Headers
from redrive.core.query import Query
from redrive.core.redrive import Redrive, Target
from redrive.core.stored import IncidentRow, LetterRow, Page, Stats, StoredLetter

if TYPE_CHECKING:
    from redrive.triage import incidents, redrives
    from redrive.triage.access import Issued
    from redrive.triage.alerts import Tried
    from redrive.triage.drive import Told
    from redrive.triage.editor import Edited
    from redrive.triage.export import Imported
    from redrive.triage.letters import Discarded, Purge
    from redrive.triage.queues import QueueRow
    from redrive.triage.redrives import Terms
    from redrive.triage.selection import Preview, Wanted


class Seen(NamedTuple):
    """One letter whole; if `masked`, with secrets and personal data hidden. The hashes are of what was hidden too."""

    stored: StoredLetter
    edits_sha256: Sequence[str]
    masked: bool = False


class Proposed(NamedTuple):
    """A redrive before it begins: what it would send, in which steps, where to. `begin` begins exactly that."""

    preview: "Preview"
    sizes: Sequence[int]
    targets: Mapping[Target, int]
    remarks: Sequence[str]
    begin: Callable[[], Awaitable[str]]


class Letters(Protocol):
    """Dead letters that were collected."""

    async def find(self, query: Query, *, limit: int, after: str | None = None) -> Page[LetterRow]:
        """A page, newest first; it may be short while there is more."""
        ...

    async def show(self, letter_id: str, *, reveal: bool = False) -> Seen:
        """One letter; with `reveal` never masked."""
        ...

    async def stats(self, queue: str | None) -> Stats:
        """Exact counts, over letters in any state."""
        ...

    async def note(self, letter_id: str, text: str) -> None:
        """Put a note on a letter."""
        ...

    async def edit(self, letter_id: str, *, body: bytes | None, headers: Headers | None) -> "Edited | None":
        """Keep another body or other headers for the next redrive; None if nothing would change."""
        ...

    async def preview(self, wanted: "Wanted") -> "Preview":
        """What `discard` would discard."""
        ...

    async def discard(self, wanted: "Wanted", *, why: str) -> "Discarded":
        """Decide that letters are not needed."""
        ...

    async def purge(self, query: Query, *, older_than: timedelta, dry_run: bool) -> "Purge":
        """Remove letters for good, or only count what would be."""
        ...

    def export(self, wanted: "Wanted") -> AsyncIterator[bytes]:
        """Letters as JSON lines, some at a time."""
        ...

    async def take_in(self, lines: BinaryIO, *, source: str) -> "Imported":
        """Take in letters that were exported."""
        ...


class Incidents(Protocol):
    """Letters that failed the same way."""

    async def find(self, state: str | None, *, limit: int, after: str | None = None) -> Page[IncidentRow]:
        """A page, the latest first; of any state for None."""
        ...

    async def show(self, incident_id: str) -> "incidents.Shown":
        """One incident, and what its letters have in common."""
        ...

    async def note(self, incident_id: str, text: str) -> IncidentRow:
        """Put a note on it."""
        ...

    async def assign(self, incident_id: str, assignee: str) -> IncidentRow:
        """Say who looks after it."""
        ...

    async def mute(self, incident_id: str, *, ends_in: str | None = None) -> IncidentRow:
        """Say no more about it, or not for so long."""
        ...

    async def reopen(self, incident_id: str) -> IncidentRow:
        """Take back `mute` or `resolve`."""
        ...

    async def resolve(self, incident_id: str) -> IncidentRow:
        """Close it."""
        ...


class Redrives(Protocol):
    """Letters on their way back. `interrupted` is what to say to a person who no longer wants to look on."""

    interrupted: str

    async def propose(self, wanted: "Wanted", terms: "Terms") -> Proposed:
        """Say what a redrive would do."""
        ...

    async def carry_out(self, redrive_id: str, *, tell: Callable[["Told"], None]) -> None:
        """Let it run, here or where it is done, until it ends or pauses; `tell` hears how far it is."""
        ...

    async def find(self, *, limit: int, after: str | None = None) -> Page[Redrive]:
        """A page, the latest first."""
        ...

    async def show(self, redrive_id: str) -> "redrives.Shown":
        """One redrive, and how far it is."""
        ...

    async def pause(self, redrive_id: str, *, why: str) -> Redrive:
        """Send nothing more until it is resumed."""
        ...

    async def resume(self, redrive_id: str) -> Redrive:
        """Go on."""
        ...

    async def cancel(self, redrive_id: str, *, why: str) -> Redrive:
        """End it."""
        ...


class Audit(Protocol):
    """Who did what."""

    async def find(self, letter_id: str | None, *, limit: int, after: str | None = None) -> Page[AuditRecord]:
        """A page, the latest first; of one letter, or all."""
        ...

    async def verify(self) -> AuditRecord | None:
        """The first record that breaks the chain; None if it holds."""
        ...


class Tokens(Protocol):
    """Who may call a service."""

    async def list(self) -> Sequence[Token]:
        """Every token, the latest first."""
        ...

    async def issue(self, name: str, *, role: Role, expires_in: str | None) -> "Issued":
        """Make a token: the one time that its secret is there to be seen."""
        ...

    async def revoke(self, token_id: str) -> Token:
        """End a token."""
        ...


class Alerts(Protocol):
    """Who is told of alerts."""

    async def test(self) -> Sequence["Tried"]:
        """Send every notifier a test."""
        ...


class Queues(Protocol):
    """Queues and their consumers. A group has to be named only where a queue has several."""

    async def list(self, *, everything: bool) -> Sequence["QueueRow"]:
        """Each group of each queue; with `everything` what is kept beside queues too."""
        ...

    async def pause(self, queue: str, *, group: str | None, why: str) -> tuple[str, str]:
        """Stop every worker of a group from fetching; return the group's name, and why, in words."""
        ...

    async def resume(self, queue: str, *, group: str | None) -> str:
        """Let them fetch again; return the group's name."""
        ...

    async def release(self, queue: str, *, group: str | None) -> tuple[str, int]:
        """Let held messages run again; return the group's name, and how many they are."""
        ...


@dataclass(frozen=True, slots=True)
class Clerk:
    """Answers what commands about letters ask for."""

    letters: Letters
    incidents: Incidents
    redrives: Redrives
    audit: Audit
    tokens: Tokens
    alerts: Alerts
