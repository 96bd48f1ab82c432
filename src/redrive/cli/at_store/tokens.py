"""Tokens, at a store."""

from collections.abc import Sequence

from redrive.core.access import Role, Token
from redrive.triage import access
from redrive.triage.access import Issued
from redrive.triage.desk import Desk


class TokensHere:
    """`clerk.Tokens` at a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def list(self) -> Sequence[Token]:
        return await access.tokens(self._desk)

    async def issue(self, name: str, *, role: Role, expires_in: str | None) -> Issued:
        return await access.issue(self._desk, name, role=role, expires_in=expires_in)

    async def revoke(self, token_id: str) -> Token:
        return await access.revoke(self._desk, token_id)
