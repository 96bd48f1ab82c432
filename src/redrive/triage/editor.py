"""The editor: another body or other headers for a letter, before it is sent back. The original stays."""

import difflib
import json
from typing import NamedTuple

from redrive.core.errors import DeadLetterError, NotAllowed, StateConflict
from redrive.core.letter import payload_hash
from redrive.core.message import RESERVED_PREFIX, Headers
from redrive.core.seal import sealed_by
from redrive.core.stored import Edit, StoredLetter
from redrive.triage.desk import Desk
from redrive.triage.masking import masked
from redrive.triage.sealing import sealed_edit, unsealed


class Draft(NamedTuple):
    """What would be sent back: the latest edit, or the original."""

    body: bytes
    headers: Headers


class Edited(NamedTuple):
    """An edit that was kept: its number, hashes of the body before and after, and the difference in words."""

    number: int
    before_sha256: str
    after_sha256: str
    difference: str


def draft_of(stored: StoredLetter) -> Draft:
    """What would be sent back now. Raises `DeadLetterError` if no copy of the message was kept, or it is sealed."""
    if (key_id := sealed_by(stored.letter)) is not None:
        raise DeadLetterError(f"letter {stored.letter.letter_id} is encrypted with the key {key_id!r}: open it first")
    if stored.edits:
        return Draft(stored.edits[-1].body, stored.edits[-1].headers)
    if stored.letter.payload is None:
        raise DeadLetterError(f"letter {stored.letter.letter_id} keeps no payload: there is nothing to edit")
    return Draft(stored.letter.payload, stored.letter.headers)


async def edit(
    desk: Desk,
    letter_id: str,
    *,
    body: bytes | None = None,
    headers: Headers | None = None,
    version: int | None = None,
) -> Edited | None:
    """Keep an edited form of a letter, to be sent back instead of the original; None if nothing would change.

    What is not given stays as in the latest edit. Raises `LetterNotFound`, `StateConflict` also if the letter changes
    meanwhile or is no longer of the `version` given, `NotAllowed` for a locked header, and `DeadLetterError` where no
    copy was kept and no body is given, or no key at hand opens it. Of a letter that is kept encrypted, edits are too.
    """
    kept_as = await desk.store.get(letter_id)
    stored = unsealed(kept_as, desk.cipher)
    current = stored.life.version
    if version not in (None, current):
        raise StateConflict(f"letter {letter_id} has changed: it is of version {current}, not {version}")
    nothing_kept = stored.letter.payload is None and not stored.edits
    before = Draft(b"", stored.letter.headers) if nothing_kept and body is not None else draft_of(stored)
    after = Draft(before.body if body is None else body, before.headers if headers is None else headers)
    _refuse_locked(after.headers)
    if after == before:
        return None
    kept = Edit(body=after.body, headers=after.headers, by=desk.who, edited_at=desk.clock.now())
    kept = sealed_edit(kept, kept_as, desk.cipher)
    number = await desk.store.edit(letter_id, kept, version=current, act=desk.act("letters.edit"))
    return Edited(number, payload_hash(before.body), payload_hash(after.body), difference(before, after))


async def shown_difference(desk: Desk, letter_id: str, number: int) -> str:
    """What an edit changed, as everybody may see it: of both drafts only what is not masked."""
    stored = masked(await desk.store.get(letter_id))
    drafts = [Draft(stored.letter.payload or b"", stored.letter.headers)]
    drafts += [Draft(one.body, one.headers) for one in stored.edits[:number]]
    return difference(drafts[-2], drafts[-1])


def difference(before: Draft, after: Draft) -> str:
    """Two drafts compared line by line, JSON laid out for people; empty if they are the same."""
    lines = difflib.unified_diff(_lines(before), _lines(after), "before", "after", lineterm="", n=2)
    return "\n".join(lines)


def _lines(draft: Draft) -> list[str]:
    head = [f"{name}: {value.decode('utf-8', 'backslashreplace')}" for name, value in draft.headers]
    return [*head, "", *_readable(draft.body).splitlines()]


def _readable(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "backslashreplace")


def _refuse_locked(headers: Headers) -> None:
    locked = sorted({name for name, _ in headers if name.startswith(RESERVED_PREFIX)})
    if locked:
        raise NotAllowed(f"headers that begin with {RESERVED_PREFIX} are Redrive's own: {', '.join(locked)}")
