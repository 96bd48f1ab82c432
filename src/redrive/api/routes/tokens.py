"""Tokens over HTTP: who may call the service. A secret is in the one answer that issues it, and nowhere else."""

from dataclasses import asdict, dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from pydantic import ConfigDict, Field

from redrive.api.auth import PermittedRoute, allowed
from redrive.api.examples import shown
from redrive.api.routes.letters import Asked
from redrive.core.access import Role, Token
from redrive.door.filters import NO_NUL, Length
from redrive.triage import access
from redrive.triage.desk import Desk

router = APIRouter(prefix="/tokens", tags=["tokens"], route_class=PermittedRoute)

TokenId = Annotated[str, Path(max_length=1024, pattern=NO_NUL, description="The token's id, which is no secret.")]


class TokenOrder(Asked):
    """Whom a token is for, what they may do, and for how long; for ever unless told."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ci", "role": "operator", "expires_in": "90d"}]})

    name: str = Field(max_length=1024, description="What the audit will say was calling.")
    role: Role
    expires_in: Length | None = Field(None, description="How long it is valid: seconds, or as in 90d.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFacts:
    """What is known of a token: everything but its secret."""

    token_id: str
    name: str
    role: Role
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken(TokenFacts):
    """A token, and its secret: the one time that it is there to be seen."""

    secret: str


_FACTS: dict[str, Any] = {
    "token_id": "2d8e27446814",
    "name": "ci",
    "role": "operator",
    "created_at": "2026-01-31T08:00:00Z",
    "created_by": "sam",
    "expires_at": "2026-05-01T08:00:00Z",
    "revoked_at": None,
}


@router.get("", responses=shown([_FACTS]))
async def list_tokens(desk: Annotated[Desk, Depends(allowed("tokens"))]) -> list[TokenFacts]:
    """Every token that was issued, the latest first."""
    return [_facts(token) for token in await access.tokens(desk)]


@router.post(
    "",
    status_code=HTTPStatus.CREATED,
    responses=shown({**_FACTS, "secret": "rdt_" + 43 * "x"}, status=HTTPStatus.CREATED),
)
async def issue_token(desk: Annotated[Desk, Depends(allowed("tokens"))], order: TokenOrder) -> IssuedToken:
    """Make a token. Only a hash of its secret is kept: this answer is the one time that it is there to be seen."""
    issued = await access.issue(desk, order.name, role=order.role, expires_in=order.expires_in)
    return IssuedToken(**asdict(issued.token), secret=issued.secret)


@router.post("/{token_id}/revoke", responses=shown({**_FACTS, "revoked_at": "2026-02-01T08:00:00Z"}))
async def revoke_token(token_id: TokenId, desk: Annotated[Desk, Depends(allowed("tokens"))]) -> TokenFacts:
    """End a token at once, for good; one that was revoked before stays as it is."""
    return _facts(await access.revoke(desk, token_id))


def _facts(token: Token) -> TokenFacts:
    return TokenFacts(**asdict(token))
