"""`redrive tokens`: who may call the service."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import App, Parameter

from redrive.cli.anywhere import STORE, Anywhere, open_clerk
from redrive.cli.output import Column, age, complain, show, span, tell
from redrive.core.access import Role, Token
from redrive.core.errors import ConfigError

tokens = App(name="tokens", help="Who may call the service: issue tokens, list and revoke them.")

_STATE_STYLES = {"valid": "green", "expired": "yellow", "revoked": "red"}


def _until(expires_at: datetime | None) -> str:
    now = datetime.now(UTC)
    if expires_at is None:
        return "never"
    return f"in {span(expires_at - now)}" if expires_at > now else f"{age(expires_at, now=now)} ago"


_COLUMNS = (
    Column("token", "token_id", style=lambda _: "bold"),
    Column("name", "name", wraps=True),
    Column("role", "role"),
    Column("state", "state", style=lambda state: _STATE_STYLES.get(state, "")),
    Column("expires", "expires_at", right=True, shown=_until),
    Column("issued", "created_at", right=True, style=lambda _: "dim", shown=lambda at: age(at, now=datetime.now(UTC))),
    Column("by", "created_by", spare=True, style=lambda _: "dim"),
)


@tokens.default
@tokens.command(name="list")
async def list_tokens(*, at: Anywhere = STORE) -> None:
    """Show every token that was issued, the latest first."""
    async with open_clerk(at) as clerk:
        found = await clerk.tokens.list()
    show(map(_fact, found), _COLUMNS, as_json=at.json, empty="no token was issued yet")


@tokens.command
async def issue(
    name: Annotated[str, Parameter(help="Whom it is for, as the audit will say.")],
    /,
    *,
    role: Annotated[Role | None, Parameter(help="What its holder may do; has to be said.")] = None,
    expires: Annotated[str | None, Parameter(help="How long it is valid, as in 90d; for ever unless told.")] = None,
    at: Anywhere = STORE,
) -> None:
    """Make a token and print its secret, once: only a hash of it is kept."""
    if role is None:
        raise ConfigError(f"--role: expected one of {', '.join(Role)}, got none")
    async with open_clerk(at, create=True) as clerk:
        issued = await clerk.tokens.issue(name, role=role, expires_in=expires)
    token = issued.token
    tell({**_fact(token), "secret": issued.secret}, issued.secret, as_json=at.json)
    until = "" if token.expires_at is None else f" until {token.expires_at:%Y-%m-%d %H:%M}Z"
    complain([f"token {token.token_id}: {token.name} is {token.role}{until}; this secret is not shown again"])


@tokens.command
async def revoke(
    token_id: Annotated[str, Parameter(help="The token, as the list shows it.")], /, *, at: Anywhere = STORE
) -> None:
    """End a token at once, for good."""
    async with open_clerk(at) as clerk:
        token = await clerk.tokens.revoke(token_id)
    said = f"token {token.token_id} of {token.name} is revoked since {token.revoked_at:%Y-%m-%d %H:%M:%S}Z"
    tell(_fact(token), said, as_json=at.json)


def _fact(token: Token) -> dict[str, Any]:
    state = "valid" if token.is_valid(datetime.now(UTC)) else "expired" if token.revoked_at is None else "revoked"
    return {**asdict(token), "state": state}
