"""The book of tokens in memory."""

import hmac
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from redrive.core.access import Token
from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.stores.memory.shelf import Shelf
from redrive.stores.witness import about_token


class MemoryTokens:
    """A `TokenBook`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def put_token(self, token: Token, *, sha256: str, act: Act) -> None:
        if token.token_id not in self._shelf.tokens:
            self._shelf.tokens[token.token_id] = (sha256, token)
            self._shelf.record(about_token(act, token), ())

    async def token_by_hash(self, sha256: str) -> Token | None:
        kept = self._shelf.tokens.values()
        return next((token for hashed, token in kept if hmac.compare_digest(hashed, sha256)), None)

    async def tokens(self) -> Sequence[Token]:
        by_id = sorted((token for _, token in self._shelf.tokens.values()), key=lambda token: token.token_id)
        return sorted(by_id, key=lambda token: token.created_at, reverse=True)

    async def revoke_token(self, token_id: str, *, at: datetime, act: Act) -> Token:
        if token_id not in self._shelf.tokens:
            raise LetterNotFound(f"no token {token_id!r} is in the store")
        hashed, token = self._shelf.tokens[token_id]
        if token.revoked_at is None:
            token = replace(token, revoked_at=at)
            self._shelf.tokens[token_id] = (hashed, token)
            self._shelf.record(about_token(act, token), ())
        return token
