"""Sealed letters: payload, key and headers of a message as one content that only a key opens.

A sealed letter keeps that content in place of the payload, and names the key in the only header it has. Its
`payload_sha256` is still that of the message: by that it differs from a letter whose message had such a header.
"""

from dataclasses import replace
from typing import Any, Final, NamedTuple

from redrive.core.errors import DeadLetterError
from redrive.core.letter import DeadLetter, payload_hash
from redrive.core.message import Headers
from redrive.core.ports.cipher import Cipher, Sealed
from redrive.core.wire.plain import dump, from_base64, load_object, to_base64
from redrive.core.wire.record import SEALED, from_pairs, to_pairs

_SIZE: Final = 4  # bytes that say how long the head is


class Content(NamedTuple):
    """What a producer sent, or what a person would have it be."""

    body: bytes
    headers: Headers = ()
    key: bytes | None = None


def sealed_by(letter: DeadLetter) -> str | None:
    """The id of the key that a letter is sealed with; None for one that anybody can read."""
    key_id = named_key(letter.headers)
    if key_id is None or letter.payload is None or payload_hash(letter.payload) == letter.payload_sha256:
        return None
    return key_id


def named_key(headers: Headers) -> str | None:
    """The key that headers name, if they are those of sealed content."""
    if len(headers) != 1 or headers[0][0] != SEALED:
        return None
    return headers[0][1].decode("utf-8", "backslashreplace")


def seal(letter: DeadLetter, cipher: Cipher) -> DeadLetter:
    """The letter with its message sealed. One that keeps no payload stays as it is."""
    if letter.payload is None:
        return letter
    content = seal_content(Content(letter.payload, letter.headers, letter.key), cipher, letter_id=letter.letter_id)
    return replace(letter, payload=content.body, headers=content.headers, key=None, content_type="")


def open_letter(letter: DeadLetter, cipher: Cipher | None) -> DeadLetter:
    """The letter with its message as it was, byte for byte. One that is not sealed stays as it is.

    Raises `DeadLetterError` if the key is not at hand, or does not open it.
    """
    if letter.payload is None or sealed_by(letter) is None:
        return letter
    content = open_content(letter.payload, letter.headers, cipher, letter_id=letter.letter_id)
    if payload_hash(content.body) != letter.payload_sha256:
        raise DeadLetterError(f"letter {letter.letter_id} is not what was sealed: its hash is another")
    return replace(letter, payload=content.body, headers=content.headers, key=content.key)


def seal_content(content: Content, cipher: Cipher, *, letter_id: str) -> Content:
    """Content that only its key opens, in the form in which letters and edits keep it."""
    about: dict[str, Any] = {"headers": to_pairs(content.headers)}
    if content.key is not None:
        about["key"] = to_base64(content.key)
    head = dump(about)
    sealed = cipher.seal(len(head).to_bytes(_SIZE) + head + content.body, letter_id=letter_id)
    return Content(sealed.content, ((SEALED, sealed.key_id.encode()),))


def open_content(body: bytes, headers: Headers, cipher: Cipher | None, *, letter_id: str) -> Content:
    """What `seal_content` sealed. Raises `DeadLetterError`."""
    key_id = named_key(headers) or ""
    if cipher is None:
        raise DeadLetterError(f"letter {letter_id} is encrypted with the key {key_id!r}, and no key is at hand")
    plain = cipher.open(Sealed(key_id, body), letter_id=letter_id)
    end = _SIZE + int.from_bytes(plain[:_SIZE])
    head = load_object(plain[_SIZE:end])
    key = head.get("key")
    return Content(plain[end:], from_pairs(head.get("headers")), None if key is None else from_base64(key))
