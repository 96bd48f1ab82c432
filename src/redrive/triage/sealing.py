"""Letters that are kept encrypted, at a desk: opened for those who may, covered for everybody else."""

from dataclasses import replace

from redrive.core.message import Headers
from redrive.core.ports.cipher import Cipher
from redrive.core.seal import Content, named_key, open_content, open_letter, seal_content, sealed_by
from redrive.core.stored import Edit, StoredLetter


def unsealed(stored: StoredLetter, cipher: Cipher | None) -> StoredLetter:
    """The letter and its edits as they were before they were sealed; one that is not stays as it is.

    Raises `DeadLetterError` if no key at hand opens them.
    """
    if sealed_by(stored.letter) is None:
        return stored
    letter_id = stored.letter.letter_id
    edits = [_opened(edit, cipher, letter_id=letter_id) for edit in stored.edits]
    return replace(stored, letter=open_letter(stored.letter, cipher), edits=edits)


def covered(stored: StoredLetter) -> StoredLetter:
    """The letter with words in place of what is sealed, which nobody can read."""
    if sealed_by(stored.letter) is None:
        return stored
    payload = stored.letter.payload or b""
    edits = [replace(edit, body=_cover(edit.body, edit.headers)) for edit in stored.edits]
    return replace(stored, letter=replace(stored.letter, payload=_cover(payload, stored.letter.headers)), edits=edits)


def sealed_edit(edit: Edit, like: StoredLetter, cipher: Cipher | None) -> Edit:
    """An edit of a letter, as encrypted as the letter is; the message's key is sealed with it."""
    if cipher is None or sealed_by(like.letter) is None:
        return edit
    key = open_letter(like.letter, cipher).key
    content = seal_content(Content(edit.body, edit.headers, key), cipher, letter_id=like.letter.letter_id)
    return replace(edit, body=content.body, headers=content.headers)


def _opened(edit: Edit, cipher: Cipher | None, *, letter_id: str) -> Edit:
    if named_key(edit.headers) is None:
        return edit
    content = open_content(edit.body, edit.headers, cipher, letter_id=letter_id)
    return replace(edit, body=content.body, headers=content.headers)


def _cover(content: bytes, headers: Headers) -> bytes:
    return f"(encrypted with the key {named_key(headers)}: {len(content):,} bytes)".encode()
