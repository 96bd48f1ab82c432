"""What of a letter is shown to people: without secrets and personal data, unless they ask for it by name.

The original is never changed: it is what a redrive sends back.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.message import Headers
from redrive.core.ports.store import Edit, LetterRow, StoredLetter
from redrive.core.privacy import MASK, PrivacyFilter
from redrive.triage.access import Caller
from redrive.triage.desk import Desk

LARGEST = 256 * 1024  # bytes of a content that is looked into; larger ones are hidden

_FILTER = PrivacyFilter(personal=True)
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # what text does not hold; \x1b colours some logs


def masked(stored: StoredLetter) -> StoredLetter:
    """A letter as everybody may see it: payload, key, headers, context, edits and the texts of errors are masked.

    A content in which nothing had to be masked is as it was, byte for byte. Else JSON stays JSON, cut short where it
    is deep or long; other text stays text; what is binary or large is replaced by its size and hash. Never raises.
    """
    return replace(stored, letter=_letter(stored.letter), edits=tuple(map(_edit, stored.edits)))


def masked_row(row: LetterRow) -> LetterRow:
    """The same for a letter in a list."""
    return replace(
        row, error_message=_FILTER.text(row.error_message), user_id=_said(row.user_id), tenant_id=_said(row.tenant_id)
    )


def masked_text(text: str) -> str:
    """The same for a text, such as the error of an incident."""
    return _FILTER.text(text)


def masked_field(name: str, value: str) -> str:
    """The same for one value and the name it has in a payload, a header or a context."""
    return MASK if _FILTER.hides(name) else _FILTER.text(value)


async def reveal(desk: Desk, caller: Caller, letter_id: str) -> StoredLetter:
    """A letter unmasked, which is on record before it is returned. Raises `NotAllowed`, `LetterNotFound`."""
    caller.demand("reveal")
    stored = await desk.store.get(letter_id)
    await reveal_many(desk, caller, [stored])
    return stored


async def reveal_many(desk: Desk, caller: Caller, letters: Sequence[StoredLetter]) -> None:
    """Put on record that letters at hand are shown unmasked, before they are. Raises `NotAllowed`."""
    caller.demand("reveal")
    if letters:
        await desk.store.record(desk.act("letters.reveal"), letter_ids=[stored.letter.letter_id for stored in letters])


def _letter(letter: DeadLetter) -> DeadLetter:
    return replace(
        letter,
        payload=None if letter.payload is None else _content(letter.payload),
        key=None if letter.key is None else _content(letter.key),
        headers=_headers(letter.headers),
        context=_FILTER.mask(letter.context),
        error_message=_FILTER.text(letter.error_message),
        stack=_said(letter.stack),
        attempts=tuple(attempt.told(_FILTER.text(attempt.error_message)) for attempt in letter.attempts),
        user_id=_said(letter.user_id),
        tenant_id=_said(letter.tenant_id),
    )


def _edit(edit: Edit) -> Edit:
    return replace(edit, body=_content(edit.body), headers=_headers(edit.headers))


def _said(text: str | None) -> str | None:
    return None if text is None else _FILTER.text(text)


def _headers(headers: Headers) -> Headers:
    return tuple(
        (_FILTER.text(name), MASK.encode() if _FILTER.hides(name) else _content(value)) for name, value in headers
    )


def _content(content: bytes) -> bytes:
    text = _text(content)
    if text is None:
        return f"(hidden: {len(content):,} bytes, sha256 {payload_hash(content)})".encode()
    names = _Names()
    try:
        value = json.loads(text, object_pairs_hook=names)
    except (ValueError, RecursionError):
        shown = _FILTER.text(text)
        return content if shown == text else shown.encode()
    shown = _FILTER.mask(value)
    if shown == value and not names.doubled:
        return content
    return json.dumps(shown, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _text(content: bytes) -> str | None:
    """The content as text; None if it is none, or too much of it."""
    if len(content) > LARGEST:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if _BINARY.search(text) else text


class _Names:
    """Makes JSON objects, and notices a name that is given twice: only the last of its values would be looked at."""

    doubled = False

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        self.doubled |= len(found) < len(pairs)
        return found
