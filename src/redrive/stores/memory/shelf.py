"""What a memory store holds."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from redrive.core.access import Token
from redrive.core.audit import Act, AuditRecord
from redrive.core.errors import LetterNotFound
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.life import Life
from redrive.core.redrive import ItemStatus, Redrive, RedriveOutcome
from redrive.core.stored import Edit, IncidentRow, LetterRow, Selected
from redrive.stores.hearing import Standing
from redrive.stores.ledger import Death, Ledger, Spot
from redrive.stores.memory.incidents import changed
from redrive.stores.witness import Link, Touched, records_of


@dataclass(slots=True)
class Kept:
    """One letter on the shelf. `died_before` are the generations of its deaths but the one it shows.

    `news` is its number when it came or reopened last; `seq` the one it came with.
    """

    seq: int
    news: int
    letter: DeadLetter
    life: Life
    note: str = ""
    edits: list[Edit] = field(default_factory=list)
    died_before: set[int] = field(default_factory=set)

    def spot(self) -> Spot:
        """Where it is counted."""
        letter = self.letter
        return Spot(letter.queue, self.life.state, letter.error_type, letter.reason.value, letter.fingerprint)

    def standing(self) -> Standing:
        """What is known of it before more is heard."""
        return Standing(self.life, self.letter.generation, self.spot(), frozenset(self.died_before))

    def can_be_sent(self) -> bool:
        """Whether there is a body to send back."""
        return bool(self.edits) or self.letter.payload is not None

    def sent_sha256(self) -> str:
        """The hash of what would be sent back."""
        return payload_hash(self.edits[-1].body) if self.edits else self.letter.payload_sha256

    def row(self) -> LetterRow:
        """The letter in a list."""
        letter = self.letter
        return LetterRow(
            letter_id=letter.letter_id,
            life=self.life,
            kind=letter.kind,
            broker=letter.broker,
            queue=letter.queue,
            group=letter.group,
            reason=letter.reason.value,
            error_type=letter.error_type,
            error_message=letter.error_message,
            error_code=letter.error_code,
            fingerprint=letter.fingerprint,
            retry_count=letter.retry_count,
            failed_at=letter.failed_at,
            original_message_id=letter.original_message_id,
            user_id=letter.user_id,
            tenant_id=letter.tenant_id,
            app_version=letter.app_version,
            dlq_entry_id=letter.dlq_entry_id,
            note=self.note,
        )

    def selected(self) -> Selected:
        """The letter in a selection."""
        of = self.letter
        return Selected(
            of.letter_id, of.failed_at, self.life, of.broker, of.queue, of.group, of.error_type, of.app_version
        )


@dataclass(slots=True)
class Item:
    """One letter of a redrive. The fingerprint is the one it had when it was claimed."""

    letter_id: str
    version: int
    step: int
    status: ItemStatus = ItemStatus.PLANNED
    generation: int | None = None
    fingerprint: str = ""
    message_id: str = ""
    sent_at: datetime | None = None
    app_version: str = ""


@dataclass(slots=True)
class Shelf:
    """Everything. Changed only between two awaits, so that every change is whole."""

    letters: dict[str, Kept] = field(default_factory=dict)
    outcomes: dict[str, dict[tuple[int, bool], RedriveOutcome]] = field(default_factory=dict)
    buried: dict[str, int] = field(default_factory=dict)
    deaths: Counter[Death] = field(default_factory=Counter)
    incidents: dict[str, IncidentRow] = field(default_factory=dict)
    redrives: dict[str, Redrive] = field(default_factory=dict)
    operations: dict[str, str] = field(default_factory=dict)
    items: dict[str, dict[str, Item]] = field(default_factory=dict)
    leases: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    tokens: dict[str, tuple[str, Token]] = field(default_factory=dict)  # each beside the hash of its secret
    memos: dict[str, tuple[str, datetime, bytes]] = field(default_factory=dict)  # by whom and until when
    recorded: set[str] = field(default_factory=set)
    audit: list[AuditRecord] = field(default_factory=list)
    last_seq: int = 0

    def letter(self, letter_id: str) -> Kept:
        """One letter. Raises `LetterNotFound`."""
        try:
            return self.letters[letter_id]
        except KeyError:
            raise LetterNotFound(f"no letter {letter_id!r} is in the store") from None

    def write(self, ledger: Ledger) -> int:
        """Carry deltas over into deaths and incidents; return how many incidents were opened, at first or again."""
        self.deaths.update(ledger.deaths)
        opened = 0
        for fingerprint, delta in ledger.incidents.items():
            before = self.incidents.get(fingerprint)
            after = changed(before, fingerprint, delta)
            if after is not None:
                self.incidents[fingerprint] = after
                opened += after.state == "open" and (before is None or before.state == "resolved")
        return opened

    def move(self, moves: Iterable[tuple[Kept, Life]]) -> None:
        """Give letters a new life, and count them there."""
        ledger = Ledger()
        for kept, life in moves:
            before, kept.life = kept.spot(), life
            ledger.move(before, kept.spot())
        self.write(ledger)

    def record(self, act: Act, touched: Sequence[Touched], *, count: int | None = None) -> None:
        """Write the audit of an act: its operation once, and each letter."""
        known = act.operation_id in self.recorded
        self.recorded.add(act.operation_id)
        total = act.count if act.count is not None else len(touched) if count is None else count
        behind = Link(self.audit[-1].seq, self.audit[-1].hash) if self.audit else Link()
        self.audit.extend(records_of(act, touched, behind=behind, count=None if known else total))

    def is_out(self, letter_id: str) -> bool:
        """Whether a redrive waits for this letter."""
        return any(letter_id in items and items[letter_id].status.out for items in self.items.values())
