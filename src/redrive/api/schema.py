"""Letters as the API says them: whole, as the row of a list, and as a message of a DLQ."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

from redrive.api.payload import Header, View, headers_of, seen, shallow
from redrive.core.attempt import Attempt
from redrive.core.audit import AuditRecord
from redrive.core.keeping import STAGE
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.life import Life
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import Edit, LetterRow, StoredLetter
from redrive.core.wire import to_json
from redrive.triage.selection import row_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterLine:
    """A letter in a list."""

    letter_id: str
    state: str
    generation: int
    version: int
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
    user_id: str | None
    tenant_id: str | None
    app_version: str
    dlq_entry_id: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DlqMessage:
    """A letter as a message of a DLQ.

    `message_id` is the letter's id. `payload` is text, or in the `payload_encoding` that is named, or null where no
    copy was kept. If it is `payload_masked`, secrets and personal data in it are hidden.
    """

    message_id: str
    original_message_id: str
    payload: Any
    error_type: str
    error_message: str
    retry_count: int
    failed_at: datetime
    user_id: str | None
    payload_encoding: Literal["base64", "hex", "json"] | None
    payload_masked: bool
    payload_sha256: str
    content_type: str
    dlq_entry_id: str
    state: str
    generation: int
    version: int
    kind: str
    broker: str
    queue: str
    group: str
    reason: str
    error_code: str | None
    fingerprint: str
    tenant_id: str | None
    app_version: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptMade:
    """One run of the handler that did not end well."""

    number: int
    generation: int
    started_at: datetime
    ended_at: datetime
    error_type: str
    error_message: str
    error_code: str | None
    crash: bool
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Something that was done to a letter, from the audit."""

    at: datetime
    who: str
    verb: str
    operation_id: str
    selection: str
    before_sha256: str
    after_sha256: str
    detail: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DlqMessageWhole(DlqMessage):
    """A letter as a message of a DLQ, whole. `attempts` are over all generations, `history` is the latest first."""

    headers: list[Header]
    context: Any
    handler: str
    node: str
    pid: int
    severity: str | None
    stack: str | None
    trace_id: str | None
    task_type: str | None
    first_failed_at: datetime | None
    received_at: datetime | None
    dlq_published_at: datetime | None
    collected_at: datetime | None
    attempts: list[AttemptMade]
    history: list[Done]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditKept:
    """What a person changed; the latest is what is sent back instead of the original."""

    number: int
    by: str
    edited_at: datetime
    sha256: str
    body: Any
    body_encoding: Literal["base64", "hex", "json"] | None
    headers: list[Header]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What was wrong with a message that was refused before its handler ran, and what refused it."""

    code: str | None
    message: str
    severity: str | None
    validation_stage: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterWhole:
    """One letter whole: `letter` as an export has it, and what the store knows of it.

    `validation_error` says what was wrong with a message whose reason is `invalid`, and is null for any other. If it is
    `masked`, secrets and personal data in it are hidden.
    """

    letter: dict[str, Any]
    validation_error: Refusal | None
    state: str
    generation: int
    version: int
    note: str
    edits: list[EditKept]
    outcomes: list[RedriveOutcome]
    redrive_ids: list[str]
    masked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterLife:
    """Where a letter is now."""

    letter_id: str
    state: str
    generation: int
    version: int


def line_of(row: LetterRow) -> LetterLine:
    """The row of a list."""
    return LetterLine(letter_id=row.letter_id, **_said_by(row))


def message_of(shown: StoredLetter, *, original: StoredLetter) -> DlqMessage:
    """A letter as a message of a DLQ; `shown` is what of the original may be seen."""
    return DlqMessage(**_message(shown, original, view="text"))


def whole_message_of(
    shown: StoredLetter, *, original: StoredLetter, view: View, history: Sequence[AuditRecord]
) -> DlqMessageWhole:
    """The same, whole. Raises `DeadLetterError` for a payload that is not JSON where that was asked for."""
    letter = shown.letter
    return DlqMessageWhole(
        **_message(shown, original, view=view),
        **{name: getattr(letter, name) for name in _SAME},
        headers=headers_of(letter.headers),
        context=shallow(letter.context),
        attempts=[_attempt(attempt) for attempt in letter.attempts],
        history=[Done(**{one.name: getattr(record, one.name) for one in fields(Done)}) for record in history],
    )


def whole_of(shown: StoredLetter, *, original: StoredLetter) -> LetterWhole:
    """A letter whole."""
    document = to_json(shown.letter)
    same = document == to_json(original.letter) and [*shown.edits] == [*original.edits]
    return LetterWhole(
        letter={name: shallow(value) for name, value in json.loads(document).items()},
        validation_error=_validation_error(shown.letter),
        **_life(shown.life),
        note=shown.note,
        edits=[
            _edit(number, edit, hashed=payload_hash(kept.body))
            for number, (edit, kept) in enumerate(zip(shown.edits, original.edits, strict=True), 1)
        ],
        outcomes=[*shown.outcomes],
        redrive_ids=[*shown.redrive_ids],
        masked=not same,
    )


def _validation_error(letter: DeadLetter) -> Refusal | None:
    if letter.reason is not Reason.INVALID:
        return None
    stage = letter.context.get(STAGE)
    return Refusal(
        code=letter.error_code,
        message=letter.error_message,
        severity=letter.severity,
        validation_stage=stage if isinstance(stage, str) else None,
    )


def life_of(letter_id: str, life: Life) -> LetterLife:
    """Where a letter is."""
    return LetterLife(letter_id=letter_id, **_life(life))


def _message(shown: StoredLetter, original: StoredLetter, *, view: View) -> dict[str, Any]:
    letter = shown.letter
    masked = letter.payload != original.letter.payload
    # What is hidden is text about the payload, not the payload: there is nothing of it to be seen in hexadecimal.
    value, encoding = seen(letter.payload, "text" if masked and view == "hex" else view)
    return {
        **_said_by(row_of(shown)),
        "message_id": letter.letter_id,
        "payload": value,
        "payload_encoding": encoding,
        "payload_masked": masked,
        "payload_sha256": letter.payload_sha256,
        "content_type": letter.content_type,
    }


def _said_by(row: LetterRow) -> dict[str, Any]:
    return {**{name: getattr(row, name) for name in _ROW}, **_life(row.life)}


def _life(life: Life) -> dict[str, Any]:
    return {"state": life.state.value, "generation": life.generation, "version": life.version}


def _attempt(attempt: Attempt) -> AttemptMade:
    return AttemptMade(**attempt._asdict())


def _edit(number: int, edit: Edit, *, hashed: str) -> EditKept:
    body, encoding = seen(edit.body)
    return EditKept(
        number=number,
        by=edit.by,
        edited_at=edit.edited_at,
        sha256=hashed,
        body=body,
        body_encoding=encoding,
        headers=headers_of(edit.headers),
    )


_ROW = [one.name for one in fields(LetterRow) if one.name not in ("letter_id", "life")]
_SAME = (
    *("handler", "node", "pid", "severity", "stack", "trace_id", "task_type"),
    *("first_failed_at", "received_at", "dlq_published_at", "collected_at"),
)
