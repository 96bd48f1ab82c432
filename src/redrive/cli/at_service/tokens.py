"""Tokens, at a service."""

from collections.abc import Sequence
from urllib.parse import quote

from msgspec import convert

from redrive.cli.at_service.client import Client
from redrive.cli.at_service.reading import Said
from redrive.core.access import Role, Token
from redrive.triage.access import Issued


class TokensThere:
    """`clerk.Tokens` at a service."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self) -> Sequence[Token]:
        return await self._client.get("/tokens", read=lambda said: [_token(one) for one in said])

    async def issue(self, name: str, *, role: Role, expires_in: str | None) -> Issued:
        order = {"name": name, "role": role.value, "expires_in": expires_in}
        return await self._client.post("/tokens", order, read=_issued)

    async def revoke(self, token_id: str) -> Token:
        return await self._client.post(f"/tokens/{quote(token_id, safe='')}/revoke", read=_token)


def _token(said: Said) -> Token:
    return convert(said, Token)


def _issued(said: Said) -> Issued:
    return Issued(_token(said), said["secret"])
