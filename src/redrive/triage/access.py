"""Access: who may do what, and the tokens by which callers are known."""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from redrive.core.access import SECRET_PREFIX, Role, Token, is_secret, secret_hash
from redrive.core.duration import Duration, as_duration
from redrive.core.errors import ConfigError, NotAllowed
from redrive.core.ports.tokens import TokenBook
from redrive.triage.desk import Desk

RIGHTS: Mapping[str, Role] = MappingProxyType(
    {
        "read": Role.VIEWER,
        "redrive": Role.OPERATOR,
        "edit": Role.OPERATOR,
        "discard": Role.OPERATOR,
        "note": Role.OPERATOR,
        "assign": Role.OPERATOR,
        "mute": Role.OPERATOR,
        "resolve": Role.OPERATOR,
        "outcome": Role.OPERATOR,
        "pause": Role.OPERATOR,
        "reveal": Role.OPERATOR,
        "purge": Role.ADMIN,
        "import": Role.ADMIN,
        "tokens": Role.ADMIN,
        "retention": Role.ADMIN,
        "notifiers": Role.ADMIN,
        "decrypt": Role.ADMIN,
    }
)
"""The table: each permission, and the least role that has it."""

_NAME = re.compile(r"[\w.@+-](?:[\w.@+ -]{0,62}[\w.@+-])?")


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who asks for something, known by name and role."""

    name: str
    role: Role

    def may(self, permission: str) -> bool:
        """Whether the table gives this caller the permission. Raises `KeyError` for one that is not in it."""
        return self.role.includes(RIGHTS[permission])

    def demand(self, permission: str) -> None:
        """Raise `NotAllowed` unless the caller may."""
        if not self.may(permission):
            raise NotAllowed(f"{permission} needs the role {RIGHTS[permission]}; {self.name} is {self.role}")


LOCAL = Caller("local", Role.ADMIN)
"""Whoever calls a service on loopback before a token was ever issued there."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, and its secret: the one time that it is there to be seen."""

    token: Token
    secret: str = field(repr=False)


async def issue(desk: Desk, name: str, *, role: Role, expires_in: Duration | None = None) -> Issued:
    """Make a token; its secret is not kept and cannot be shown again. Raises `ConfigError` with every mistake."""
    created_at = desk.clock.now()
    token = Token(
        token_id=secrets.token_hex(6),
        name=name,
        role=role,
        created_at=created_at,
        created_by=desk.who,
        expires_at=_checked_expiry(name, expires_in, now=created_at),
    )
    secret = SECRET_PREFIX + secrets.token_urlsafe(32)
    await desk.store.put_token(token, sha256=secret_hash(secret), act=desk.act("tokens.issue"))
    return Issued(token, secret)


async def revoke(desk: Desk, token_id: str) -> Token:
    """End a token at once, for good; one that was revoked before stays as it is. Raises `LetterNotFound`."""
    return await desk.store.revoke_token(token_id, at=desk.clock.now(), act=desk.act("tokens.revoke"))


async def tokens(desk: Desk) -> Sequence[Token]:
    """Every token there ever was, the latest first."""
    return await desk.store.tokens()


async def recognise(book: TokenBook, secret: str, now: datetime) -> Caller | None:
    """The caller who has this secret; None if it opens nothing, or no longer. Says nothing about why."""
    if not is_secret(secret):
        return None
    token = await book.token_by_hash(secret_hash(secret))
    return Caller(token.name, token.role) if token is not None and token.is_valid(now) else None


async def any_valid(book: TokenBook, now: datetime) -> bool:
    """Whether anybody has a token that opens the door now."""
    return any(token.is_valid(now) for token in await book.tokens())


async def any_issued(book: TokenBook) -> bool:
    """Whether there ever was a token, valid or not: only before the first may a caller be `LOCAL`.

    The end of the last one takes a right away; it must not give everybody all of them.
    """
    return bool(await book.tokens())


def _checked_expiry(name: str, expires_in: Duration | None, *, now: datetime) -> datetime | None:
    mistakes = []
    expires_at = None
    if _NAME.fullmatch(name) is None:
        mistakes.append(f"name: expected 1 to 64 letters, digits, spaces or any of . _ @ + -, got {name!r}")
    if name == LOCAL.name:
        mistakes.append(f"name: {name} is what the audit calls a caller without a token")
    try:
        expires_at = None if expires_in is None else now + as_duration(expires_in)
    except ValueError as error:
        mistakes.append(f"expires: {error}")
    if expires_at == now:
        mistakes.append("expires: expected more than zero")
    if mistakes:
        raise ConfigError(mistakes)
    return expires_at
