"""The port of access: the book of tokens."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from redrive.core.access import Token
from redrive.core.audit import Act


class TokenBook(Protocol):
    """The tokens that were issued, each beside the hash of its secret; the secret itself is never brought here.

    No method but `token_by_hash` takes part in finding out who calls, and none gives a hash away. Tokens are never
    removed: the audit speaks of them.
    """

    async def put_token(self, token: Token, *, sha256: str, act: Act) -> None:
        """Keep a token that was issued. One that is there already stays as it is, and is not audited again."""
        ...

    async def token_by_hash(self, sha256: str) -> Token | None:
        """The token whose secret has this hash, compared in constant time; also one that is no longer valid."""
        ...

    async def tokens(self) -> Sequence[Token]:
        """Every token, the latest first."""
        ...

    async def revoke_token(self, token_id: str, *, at: datetime, act: Act) -> Token:
        """End a token. One that was revoked before keeps its instant, and is not audited again.

        Raises `LetterNotFound`.
        """
        ...
