"""AES-GCM with 256 bits: content can be neither read, nor changed, nor moved to another letter, without its key."""

import os
from collections.abc import Mapping
from typing import Final

from redrive.core.errors import DeadLetterError, MissingExtra
from redrive.core.ports.cipher import Sealed

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError as error:
    raise MissingExtra("payload='encrypted'", extra="encryption") from error

_NONCE: Final = 12
"""Bytes of chance in front of each content: one key serves for billions of letters."""


class AesGcm:
    """Seals with the first key, opens with any: a key that is replaced stays for as long as letters name it.

    `keys` are 32 bytes each, by id.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = {key_id: AESGCM(key) for key_id, key in keys.items()}
        self._current = next(iter(keys))

    def seal(self, content: bytes, *, letter_id: str) -> Sealed:
        """The content for one letter, under the first key."""
        nonce = os.urandom(_NONCE)
        return Sealed(self._current, nonce + self._keys[self._current].encrypt(nonce, content, letter_id.encode()))

    def open(self, sealed: Sealed, *, letter_id: str) -> bytes:
        """What was sealed for this letter. Raises `DeadLetterError` if its key is not here, or it was changed."""
        key = self._keys.get(sealed.key_id)
        if key is None:
            raise DeadLetterError(
                f"letter {letter_id} is encrypted with the key {sealed.key_id!r}, which is not at hand"
            )
        nonce, content = sealed.content[:_NONCE], sealed.content[_NONCE:]
        try:
            return key.decrypt(nonce, content, letter_id.encode())
        except (InvalidTag, ValueError) as error:
            raise DeadLetterError(
                f"letter {letter_id} cannot be opened: the key {sealed.key_id!r} is another one, or it was changed"
            ) from error
