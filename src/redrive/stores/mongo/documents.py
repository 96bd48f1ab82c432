"""Letters as documents, and back.

At the top what the message itself says, `letter_id`, `task_type` and `processed_at`; in `dlq_metadata` what is known of
its death, by the names that others use; in `redrive` what the store needs to keep it exactly and to find it again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from bson import Binary

from redrive.core.attempt import dump_trail, load_trail
from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState, Life
from redrive.core.message import Headers
from redrive.core.query import searchable_text
from redrive.core.reason import Reason
from redrive.core.redrive import RedriveOutcome
from redrive.core.stored import LetterRow, Selected
from redrive.core.wire.plain import as_millis
from redrive.stores.exact import from_json, instant, microseconds, to_json, unescaped
from redrive.stores.ledger import Spot
from redrive.stores.mongo import ticket
from redrive.stores.mongo.values import from_maybe, from_word, texts, to_text, to_word

Document = dict[str, Any]

_INSTANTS = ("first_failed_at", "failed_at", "received_at", "dlq_published_at", "collected_at")
_COUNTS = ("generation", "pid", "retry_count")
_APART = ("letter_id", "key", "payload", "headers", "context", "attempts", *_INSTANTS, *_COUNTS)
_TEXTS = tuple(field.name for field in fields(DeadLetter) if field.name not in _APART)
_SAID_AS = {"error_message": "original_error"}

STATES = {state.value: state for state in LetterState}


def path_of(name: str) -> str:
    """Where a document has a field of a letter."""
    if name == "letter_id":
        return name
    return f"redrive.{name}" if name in _INSTANTS else f"dlq_metadata.{_SAID_AS.get(name, name)}"


_LISTED = [field.name for field in fields(LetterRow) if field.name not in ("life", "note")]
LISTED = dict.fromkeys(
    [*map(path_of, _LISTED), *(f"redrive.{name}" for name in ("state", "generation", "version", "note"))], 1
)
"""What a list reads."""

_SELECTED = [name for name in Selected._fields if name != "life"]
SELECTED = dict.fromkeys(
    [*map(path_of, _SELECTED), *(f"redrive.{name}" for name in ("state", "generation", "version"))], 1
)
"""What a selection reads."""

SPOT = dict.fromkeys(("redrive.state", *map(path_of, ("queue", "error_type", "reason", "fingerprint"))), 1)
"""Where a letter is counted."""


def to_document(letter: DeadLetter, life: Life, *, number: int, now: datetime) -> Document:
    """The document of a letter that is new."""
    own = ticket.fields_of(letter.payload)
    return {
        **own,
        "_id": number,
        "letter_id": to_text(letter.letter_id),
        "task_type": own.get("task_type") if letter.task_type is None else to_text(letter.task_type),
        "processed_at": letter.collected_at or now,
        "dlq_metadata": _metadata(letter),
        "redrive": {
            **to_life_fields(life),
            **{name: microseconds(getattr(letter, name)) for name in _INSTANTS},
            "news": number,
            "note": "",
            "died_before": [],
            "outcomes": [],
            "edits": 0,
            "sent_sha256": to_text(letter.payload_sha256),
            "payload": to_bytes(letter.payload),
            "key": to_bytes(letter.key),
            "headers": from_headers(letter.headers),
            "context": to_json(letter.context),
            "attempts": dump_trail(letter.attempts[:]).decode(),
            "text": searchable_text(letter),
        },
    }


def _metadata(letter: DeadLetter) -> Document:
    said = {_SAID_AS.get(name, name): to_word(getattr(letter, name)) for name in _TEXTS}
    published_at = letter.dlq_published_at
    return {
        **said,
        **{name: getattr(letter, name) for name in _COUNTS},
        "last_failure_timestamp": as_millis(letter.failed_at),
        "dlq_published_at": None if published_at is None else as_millis(published_at),
    }


def to_letter(document: Mapping[str, Any]) -> DeadLetter:
    """The letter of a whole document."""
    said, kept = document["dlq_metadata"], document["redrive"]
    values: dict[str, Any] = {name: from_word(said[_SAID_AS.get(name, name)]) for name in _TEXTS}
    values |= {name: said[name] for name in _COUNTS} | {name: from_maybe(kept[name]) for name in _INSTANTS}
    values["reason"] = Reason(said["reason"])
    return DeadLetter(
        **values,
        letter_id=unescaped(document["letter_id"]),
        payload=from_bytes(kept["payload"]),
        key=from_bytes(kept["key"]),
        headers=to_headers(kept["headers"]),
        context=from_json(kept["context"]),
        attempts=load_trail(kept["attempts"]),
    )


def to_selected(document: Mapping[str, Any]) -> Selected:
    """A letter in a selection, from what `SELECTED` reads."""
    said: Mapping[str, str] = document["dlq_metadata"]
    return Selected(
        letter_id=unescaped(document["letter_id"]),
        life=to_life(document),
        broker=unescaped(said["broker"]),
        queue=unescaped(said["queue"]),
        group=unescaped(said["group"]),
        error_type=unescaped(said["error_type"]),
        failed_at=instant(document["redrive"]["failed_at"]),
        app_version=unescaped(said["app_version"]),
    )


def to_row(document: Mapping[str, Any]) -> LetterRow:
    """A letter in a list, from what `LISTED` reads."""
    said, kept = document["dlq_metadata"], document["redrive"]
    values: dict[str, Any] = {}
    for name in _LISTED:
        if name not in ("letter_id", "failed_at", "retry_count"):
            values[name] = from_word(said[_SAID_AS.get(name, name)])
    return LetterRow(
        **values,
        letter_id=unescaped(document["letter_id"]),
        failed_at=instant(kept["failed_at"]),
        retry_count=said["retry_count"],
        life=to_life(document),
        note=unescaped(kept["note"]),
    )


def to_life_fields(life: Life) -> Document:
    """What a move changes."""
    return {"state": life.state.value, "generation": life.generation, "version": life.version}


def moved(life: Life) -> Document:
    """The same, as changes to a document."""
    return {f"redrive.{name}": value for name, value in to_life_fields(life).items()}


def to_life(document: Mapping[str, Any]) -> Life:
    """What state a letter is in."""
    kept = document["redrive"]
    return Life(STATES[kept["state"]], kept["generation"], kept["version"])


def to_spot(document: Mapping[str, Any]) -> Spot:
    """Where a letter is counted, from what `SPOT` reads."""
    said = document["dlq_metadata"]
    queue, error_type, reason, fingerprint = (
        unescaped(said[name]) for name in ("queue", "error_type", "reason", "fingerprint")
    )
    return Spot(queue, STATES[document["redrive"]["state"]], error_type, reason, fingerprint)


def spot_of(letter: DeadLetter, life: Life) -> Spot:
    """Where a letter is counted from now on."""
    return Spot(letter.queue, life.state, letter.error_type, letter.reason.value, letter.fingerprint)


def to_bytes(value: bytes | None) -> Binary | None:
    """Bytes as they are kept."""
    return None if value is None else Binary(value)


def from_bytes(kept: bytes | None) -> bytes | None:
    """The bytes that are kept so."""
    return None if kept is None else bytes(kept)


def from_headers(headers: Headers) -> list[Document]:
    """Headers as they are kept, in their order."""
    return [{"name": to_text(name), "value": Binary(value)} for name, value in headers]


def to_headers(kept: Sequence[Document]) -> Headers:
    """The headers that are kept so."""
    return tuple((unescaped(one["name"]), bytes(one["value"])) for one in kept)


def from_outcome(outcome: RedriveOutcome) -> Document:
    """A report, without the letter that it is about."""
    queue, group, message_id, app_version, node = texts(
        (outcome.queue, outcome.group, outcome.message_id, outcome.app_version, outcome.node)
    )
    return {
        "generation": outcome.generation,
        "succeeded": outcome.succeeded,
        "reported_at": microseconds(outcome.reported_at),
        "queue": queue,
        "group": group,
        "message_id": message_id,
        "attempts": outcome.attempts,
        "app_version": app_version,
        "node": node,
    }


def to_outcome(kept: Mapping[str, Any], *, letter_id: str) -> RedriveOutcome:
    """The report that is kept so."""
    return RedriveOutcome(
        letter_id,
        generation=kept["generation"],
        succeeded=kept["succeeded"],
        reported_at=instant(kept["reported_at"]),
        queue=unescaped(kept["queue"]),
        group=unescaped(kept["group"]),
        message_id=unescaped(kept["message_id"]),
        attempts=kept["attempts"],
        app_version=unescaped(kept["app_version"]),
        node=unescaped(kept["node"]),
    )
