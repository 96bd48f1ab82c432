"""What of a letter is shown to people: without secrets and personal data, unless they ask for it by name.

The original is never changed: it is what a redrive sends back.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from redrive.core.attempt import Attempt
from redrive.core.audit import AuditRecord
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.message import Headers
from redrive.core.privacy import MASK, PrivacyFilter
from redrive.core.redrive import Redrive
from redrive.core.seal import sealed_by
from redrive.core.stored import Edit, LetterRow, StoredLetter
from redrive.triage.access import Caller
from redrive.triage.desk import Desk
from redrive.triage.sealing import covered, unsealed

LARGEST = 256 * 1024  # bytes of a content that is looked into; larger ones are hidden

Operation = TypeVar("Operation", AuditRecord, Redrive)

_FILTER = PrivacyFilter(personal=True)
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # what text does not hold; \x1b colours some logs
_SEARCHED = re.compile(r"((?:^|, )text=).*?(?=, state=[a-z|]+\Z|\Z)", re.DOTALL)  # in a selection's words
_SHORT = ("error_type", "error_code", "original_message_id", "app_version")
_SHORT_OF_WHOLE = (*_SHORT, "node", "trace_id", "task_type", "severity", "content_type")


def masked(stored: StoredLetter) -> StoredLetter:
    """A letter as everybody may see it: payload, key, headers, context, edits and texts are masked.

    A content in which nothing had to be masked is as it was, byte for byte. Else JSON stays JSON, cut short where it
    is deep or long; other text stays text; what is binary or large is replaced by its size and hash. Never raises.
    """
    stored = covered(stored)
    return replace(stored, letter=_letter(stored.letter), edits=tuple(map(_edit, stored.edits)))


def masked_row(row: LetterRow) -> LetterRow:
    """The same for a letter in a list."""
    return replace(
        row,
        error_message=_FILTER.text(row.error_message),
        user_id=_said(row.user_id),
        tenant_id=_said(row.tenant_id),
        **_short(row, _SHORT),
    )


def masked_text(text: str) -> str:
    """The same for a text, such as the error of an incident."""
    return _FILTER.text(text)


def masked_operation(operation: Operation, caller: Caller) -> Operation:
    """A record of the audit or a redrive, as this caller may see it: who may reveal sees what was searched for.

    For others its selection is masked as a text, and the text that letters had to hold is hidden whole; so are the
    words that people gave with it: notes, and why.
    """
    if caller.may("reveal"):
        return operation
    selection = _FILTER.text(_SEARCHED.sub(rf"\1{MASK}", operation.selection))
    if isinstance(operation, Redrive):
        return replace(operation, selection=selection, why=_FILTER.text(operation.why))
    return replace(operation, selection=selection, detail=_FILTER.mask(operation.detail))


def masked_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by texts that are masked; those that look the same then are counted together."""
    found = Counter[str]()
    for text, number in counts.items():
        found[_FILTER.text(text)] += number
    return dict(found)


def masked_field(name: str, value: str) -> str:
    """The same for one value and the name it has in a payload, a header or a context."""
    return MASK if _FILTER.hides(name) else _FILTER.text(value)


async def reveal(desk: Desk, caller: Caller, letter_id: str) -> StoredLetter:
    """A letter unmasked, and opened if it is kept encrypted, which is on record before it is returned.

    Raises `NotAllowed`, `LetterNotFound`, and `DeadLetterError` for one that no key at hand opens.
    """
    caller.demand("reveal")
    stored = await desk.store.get(letter_id)
    opened = open_for(desk, caller, stored)
    if opened is stored:
        await reveal_many(desk, caller, [stored])
    else:
        await desk.store.record(desk.act("letters.decrypt"), letter_ids=[letter_id])
    return opened


def open_for(desk: Desk, caller: Caller, stored: StoredLetter) -> StoredLetter:
    """A letter at hand, opened if it is kept encrypted; to show it has to be on record first. Raises as `reveal`."""
    if sealed_by(stored.letter) is None:
        return stored
    caller.demand("decrypt")
    return unsealed(stored, desk.cipher)


async def reveal_many(desk: Desk, caller: Caller, letters: Sequence[StoredLetter]) -> None:
    """Put on record that letters at hand are shown unmasked, before they are: what is encrypted stays so.

    Raises `NotAllowed`.
    """
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
        attempts=tuple(map(_attempt, letter.attempts)),
        user_id=_said(letter.user_id),
        tenant_id=_said(letter.tenant_id),
        **_short(letter, _SHORT_OF_WHOLE),
    )


def _attempt(attempt: Attempt) -> Attempt:
    return attempt._replace(
        error_type=_FILTER.text(attempt.error_type),
        error_message=_FILTER.text(attempt.error_message),
        error_code=_said(attempt.error_code),
        node=_FILTER.text(attempt.node),
    )


def _edit(edit: Edit) -> Edit:
    return replace(edit, body=_content(edit.body), headers=_headers(edit.headers))


def _said(text: str | None) -> str | None:
    return None if text is None else _FILTER.text(text)


def _short(told: LetterRow | DeadLetter, names: Sequence[str]) -> dict[str, Any]:
    return {name: _said(getattr(told, name)) for name in names}


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
