"""A letter as plain JSON values: what every form writes and reads, each in its own dress."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from redrive.core.attempt import RowTrail, Trail, to_rows
from redrive.core.context import OwnFields
from redrive.core.fingerprint import fingerprint
from redrive.core.letter import DeadLetter, letter_id, letter_of, payload_hash
from redrive.core.message import Headers
from redrive.core.reason import Reason
from redrive.core.wire.plain import as_count, as_instant, as_text, as_word, dump, from_base64, to_base64

USUAL_NAMES = ("original_message_id", "error_type", "error_message", "retry_count", "failed_at")
"""Written even when empty: what readers of other dead letter queues look for."""

SEALED: Final = "rd-sealed"
"""The only header of a letter whose message is sealed (`core.seal`): the id of the key."""

TEXTS: Final = (
    *("letter_id", "kind", "broker", "queue", "group", "handler", "app_version", "node", "original_message_id"),
    *("payload_sha256", "content_type", "error_type", "error_message", "fingerprint", "dlq_entry_id"),
)
WORDS: Final = ("error_code", "severity", "stack", *OwnFields._fields)
COUNTS: Final = ("generation", "pid", "retry_count")
INSTANTS: Final = ("first_failed_at", "failed_at", "received_at", "dlq_published_at", "collected_at")

NAMES = tuple(field.name for field in fields(DeadLetter) if field.name not in ("payload", "key", "headers"))
"""What a record holds: everything but what the producer sent."""


class Entry(NamedTuple):
    """Where a letter was found: it gives what a foreign letter does not say. `queue` is the one it was for."""

    queue: str
    entry_id: str
    now: datetime
    broker: str = ""


class Original(NamedTuple):
    """What the producer sent, byte for byte; no payload where none was kept."""

    payload: bytes | None
    key: bytes | None = None
    headers: Headers = ()


def to_record(letter: DeadLetter) -> dict[str, Any]:
    """Everything but payload, key and headers; empty values are left out."""
    record: dict[str, Any] = {}
    for name in NAMES:
        value = getattr(letter, name)
        if isinstance(value, datetime):
            record[name] = value.isoformat()
        elif name == "attempts":
            record[name] = to_rows(value)
        else:
            record[name] = value
    return {name: value for name, value in record.items() if value or name in USUAL_NAMES}


def from_record(record: Mapping[str, Any], original: Original, *, entry: Entry | None = None) -> DeadLetter:
    """The letter, read leniently: what is missing or cannot be read is taken from the entry, or is unknown.

    Raises `ValueError` without an entry if the letter does not say who it is and when it failed.
    """
    values = {**_UNSAID, **record}
    if len(values) > len(_UNSAID):
        values = {name: values[name] for name in _UNSAID}
    if not _are_said(values):
        values.update({name: read(values[name]) for name, read in _SAID.items()})
    for name, read in _READ:
        values[name] = read(values[name])
    values["payload"], values["key"], values["headers"] = original
    return complete(values, entry=entry)


def complete(values: dict[str, Any], *, entry: Entry | None) -> DeadLetter:
    """The letter with these values, each of its kind, and with what is unsaid."""
    values["kind"] = values["kind"] or "message"
    values["error_type"] = values["error_type"] or "unknown"
    payload = values["payload"]
    if payload is not None and not (values["payload_sha256"] and _is_sealed(values["headers"])):
        values["payload_sha256"] = payload_hash(payload)
    if entry is not None:
        _take_from(entry, values)
    if not values["letter_id"] or values["failed_at"] is None:
        raise ValueError("not a dead letter: it has no letter_id, or does not say when it failed")
    return letter_of(values)


def _are_said(values: Mapping[str, Any]) -> bool:
    """Whether what should be text is that, as nearly everywhere: then it is taken as it is."""
    words = _words(values)
    return {*map(type, _texts(values))} == _TEXT and {*map(type, words)} <= _WORD and "" not in words


def _is_sealed(headers: Headers) -> bool:
    """Whether the payload is not the message's own, so that its hash is not the message's either."""
    return len(headers) == 1 and headers[0][0] == SEALED


def _reason(value: Any) -> Reason:
    return _REASONS.get(value, Reason.UNKNOWN) if isinstance(value, str) else Reason.UNKNOWN


def _trail(value: Any) -> Trail:
    return RowTrail(value) if isinstance(value, list) else ()


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _instant(value: Any) -> datetime | None:
    if value is None:
        return None
    return _written(value) if type(value) is str else as_instant(value)


@lru_cache(maxsize=64)
def _written(text: str) -> datetime | None:
    """Letters that were written together have most of their instants in common."""
    return as_instant(text)


_REASONS: Final = {reason.value: reason for reason in Reason}
_texts: Final = itemgetter(*TEXTS)
_words: Final = itemgetter(*WORDS)
_TEXT: Final = {str}
_WORD: Final = {str, type(None)}
_SAID: Final[Mapping[str, Callable[[Any], Any]]] = {**dict.fromkeys(TEXTS, as_text), **dict.fromkeys(WORDS, as_word)}
_READ: Final[tuple[tuple[str, Callable[[Any], Any]], ...]] = (
    *((name, as_count) for name in COUNTS),
    *((name, _instant) for name in INSTANTS),
    ("reason", _reason),
    ("attempts", _trail),
    ("context", _object),
)
_UNSAID: Final[Mapping[str, Any]] = {
    **dict.fromkeys(field.name for field in fields(DeadLetter)),
    **dict.fromkeys(TEXTS, ""),
    **dict.fromkeys(COUNTS, 0),
}


def _take_from(entry: Entry, values: dict[str, Any]) -> None:
    values["queue"] = values["queue"] or entry.queue
    values["failed_at"] = values["failed_at"] or entry.now
    if values["letter_id"]:
        return
    values["letter_id"] = letter_id(
        broker=entry.broker,
        incarnation="",
        queue=entry.queue,
        group="",
        origin=entry.entry_id,
        payload_sha256=values["payload_sha256"],
    )
    values["broker"] = values["broker"] or entry.broker
    values["fingerprint"] = values["fingerprint"] or fingerprint(
        values["error_type"], frame="", message=values["error_message"]
    )


def to_pairs(headers: Headers) -> list[list[Any]]:
    """Headers as JSON values: `[name, text]`, or `[name, {"base64": …}]` where the bytes are not UTF-8."""
    try:
        return [[name, value.decode()] for name, value in headers]
    except UnicodeDecodeError:
        return [[name, _text_or_base64(value)] for name, value in headers]


def _text_or_base64(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": to_base64(value)}


def from_pairs(value: Any) -> Headers:
    """Headers from JSON values: pairs as we write them, or an object as others do."""
    if isinstance(value, dict):
        return tuple((name, _bytes(item)) for name, item in value.items())
    rows = value if isinstance(value, list) else []
    return tuple([(as_text(row[0]), _bytes(row[1])) for row in rows if isinstance(row, list) and len(row) == 2])  # noqa: PLR2004 - a pair


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and [*value] == ["base64"]:
        try:
            return from_base64(value["base64"])
        except ValueError:
            return dump(value)
    return as_text(value).encode()
