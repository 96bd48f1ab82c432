"""The port for what keeps content from those who have no key."""

from typing import NamedTuple, Protocol


class Sealed(NamedTuple):
    """Content that only the named key opens."""

    key_id: str
    content: bytes


class Cipher(Protocol):
    """Seals content, and opens what was sealed. Pure, safe from any thread; what fits one letter fits no other."""

    def seal(self, content: bytes, *, letter_id: str) -> Sealed:
        """The content for one letter, under the key that is current. Never the same twice."""
        ...

    def open(self, sealed: Sealed, *, letter_id: str) -> bytes:
        """What was sealed for this letter, under whichever key. Raises `DeadLetterError` if it cannot be opened."""
        ...
