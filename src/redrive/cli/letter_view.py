"""How a letter looks: a row of a list, and the whole of it."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from redrive.cli.clerk import Seen
from redrive.cli.desk import SHORT
from redrive.cli.output import Column, age, preview, span
from redrive.cli.sheet import Part, block
from redrive.core.attempt import Attempt
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.stored import LetterRow, StoredLetter

LINES = 40  # of a payload or a stack that a terminal is shown
BYTES = 64 * 1024
STATE_STYLES = {"open": "red", "redriving": "cyan", "resolved": "green", "discarded": "dim", "parked": "yellow"}

COLUMNS = (
    Column("letter", "letter_id", style=lambda _: "bold", shown=lambda found: found[:SHORT]),
    Column("age", "failed_at", right=True, style=lambda _: "dim", shown=lambda at: age(at, now=datetime.now(UTC))),
    Column("queue", "queue"),
    Column("state", "state", style=lambda state: STATE_STYLES.get(state, "")),
    Column("gen", "generation", right=True, style=lambda _: "dim"),
    Column("reason", "reason", style=lambda _: "dim"),
    Column("error", "error", wraps=True),
    Column("note", "note", wraps=True, style=lambda _: "dim"),
)


def fact_of(row: LetterRow) -> dict[str, Any]:
    """A letter of a list, flat."""
    facts = asdict(row)
    del facts["life"]
    return {**facts, **_life(row), "error": _error(row.error_type, row.error_message)}


def whole_fact(seen: Seen) -> dict[str, Any]:
    """One letter whole, flat: the letter as `letters export` writes it, and what the store knows of it."""
    from redrive.core.wire import to_json

    stored = seen.stored
    return {
        **json.loads(to_json(stored.letter)),
        **_life(stored),
        "note": stored.note,
        "edits": [
            {"number": number, "by": edit.by, "edited_at": edit.edited_at, "payload_sha256": hashed}
            for number, (edit, hashed) in enumerate(zip(stored.edits, seen.edits_sha256, strict=True), 1)
        ],
        "outcomes": [asdict(outcome) for outcome in stored.outcomes],
        "redrive_ids": [*stored.redrive_ids],
        "masked": seen.masked,
    }


def head_of(seen: Seen) -> str:
    """One line above everything else."""
    letter, life = seen.stored.letter, seen.stored.life
    masked = "; masked, --reveal shows it whole" if seen.masked else ""
    return f"letter {letter.letter_id}: {life.state}, generation {life.generation}{masked}"


def parts_of(seen: Seen, *, now: datetime) -> Iterator[Part]:
    """The letter in parts, what matters first."""
    stored, letter = seen.stored, seen.stored.letter
    yield Part("what happened", _rows(_happened(letter, now=now)) + ([("note", stored.note)] if stored.note else []))
    yield Part("where", _rows(_where(letter)))
    yield Part(
        "about", _rows({**_about(letter), **{name: json.dumps(value) for name, value in letter.context.items()}})
    )
    yield Part("attempts", [_attempt(attempt) for attempt in letter.attempts])
    yield Part("stack", block(letter.stack, most=LINES) if letter.stack else ())
    yield Part("headers", [(name, preview(value, width=200)) for name, value in letter.headers])
    yield Part(
        _payload_title(letter, masked=seen.masked),
        block(readable(letter.payload), most=LINES) if letter.payload else (),
    )
    for number, edit in enumerate(stored.edits, 1):
        title = f"edit {number}, by {edit.by}, {_at(edit.edited_at)}"
        yield Part(title, block(readable(edit.body), most=LINES))
    yield Part(
        "sent back",
        [
            (f"generation {outcome.generation}", _outcome(outcome.succeeded, outcome.app_version, outcome.reported_at))
            for outcome in stored.outcomes
        ],
    )
    yield Part("redrives", [("", redrive_id) for redrive_id in stored.redrive_ids])


def readable(body: bytes) -> str:
    """A payload as people read it: JSON laid out, other bytes escaped, no more than a terminal is shown."""
    if len(body) <= BYTES:
        try:
            return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            pass
    return body[:BYTES].decode("utf-8", "backslashreplace")


def _life(found: LetterRow | StoredLetter) -> dict[str, Any]:
    life = found.life
    return {"state": life.state.value, "generation": life.generation, "version": life.version}


def _error(error_type: str, message: str) -> str:
    short = error_type.rpartition(".")[2]
    return preview((f"{short}: {message}" if message else short).encode("utf-8", "surrogatepass"), width=100)


def _happened(letter: DeadLetter, *, now: datetime) -> dict[str, str]:
    return {
        "reason": letter.reason.value,
        "error": f"{letter.error_type}: {letter.error_message}" if letter.error_message else letter.error_type,
        "code": letter.error_code or "",
        "severity": letter.severity or "",
        "failed": f"{_at(letter.failed_at)}, {age(letter.failed_at, now=now)} ago",
        "incident": letter.fingerprint,
    }


def _where(letter: DeadLetter) -> dict[str, str]:
    return {
        "queue": letter.queue,
        "group": letter.group,
        "broker": letter.broker,
        "handler": letter.handler,
        "version": letter.app_version,
        "node": f"{letter.node}, pid {letter.pid}" if letter.node and letter.pid else letter.node,
        "message": letter.original_message_id,
        "key": preview(letter.key) if letter.key else "",
    }


def _about(letter: DeadLetter) -> dict[str, str]:
    return {
        "user": letter.user_id or "",
        "tenant": letter.tenant_id or "",
        "trace": letter.trace_id or "",
        "task": letter.task_type or "",
    }


def _rows(facts: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, text) for name, text in facts.items() if text]


def _attempt(attempt: Attempt) -> tuple[str, str]:
    label = f"{attempt.number}" if not attempt.generation else f"{attempt.number}, generation {attempt.generation}"
    took = attempt.ended_at - attempt.started_at
    died = "the process died: " if attempt.crash else ""
    return (
        label,
        f"{_at(attempt.started_at)}, {_lasted(took)}: {died}{_error(attempt.error_type, attempt.error_message)}",
    )


def _lasted(took: timedelta) -> str:
    if took >= timedelta(seconds=1):
        return span(took)
    millis = took // timedelta(milliseconds=1)
    return f"{millis} ms" if millis else "<1 ms"


def _payload_title(letter: DeadLetter, *, masked: bool) -> str:
    payload = letter.payload or b""
    size = "masked" if masked and payload_hash(payload) != letter.payload_sha256 else f"{len(payload):,} bytes"
    kind = f", {letter.content_type}" if letter.content_type else ""
    return f"payload, {size}{kind}, sha256 {letter.payload_sha256[:16]}…"


def _outcome(succeeded: bool, version: str, at: datetime) -> str:  # noqa: FBT001 - the outcome itself
    on = f" on version {version}" if version else ""
    return f"{'succeeded' if succeeded else 'failed again'}{on}, {_at(at)}"


def _at(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}Z"
