"""The book of tokens: who may call, each beside the hash of a secret that is kept nowhere."""

import hmac
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from redrive.core.access import Role, Token
from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.stores.sql import auditing
from redrive.stores.sql.tables import token as table
from redrive.stores.sql.upsert import insert
from redrive.stores.witness import about_token

_NAMES = [field.name for field in fields(Token)]
_LOOKED_UP = 16  # digits of a hash that the database compares; what its timing could tell ends with them


def put(connection: Connection, token: Token, *, sha256: str, act: Act) -> None:
    """Keep a token, once."""
    kept = connection.execute(
        insert(table).on_conflict_do_nothing(), asdict(token) | {"role": token.role.value, "sha256": sha256}
    )
    if kept.rowcount:
        auditing.record(connection, about_token(act, token), ())


def by_hash(connection: Connection, sha256: str) -> Token | None:
    """The token whose secret has this hash."""
    begins = sha256[:_LOOKED_UP]
    rows = connection.execute(select(table).where(table.c.sha256.between(begins, f"{begins}g"))).mappings()
    return next((_to_token(row) for row in rows if hmac.compare_digest(row["sha256"], sha256)), None)


def every(connection: Connection) -> list[Token]:
    """All tokens, the latest first."""
    rows = connection.execute(select(table).order_by(table.c.created_at.desc(), table.c.token_id)).mappings()
    return [_to_token(row) for row in rows]


def revoke(connection: Connection, token_id: str, *, at: datetime, act: Act) -> Token:
    """End a token, once."""
    unless_before = update(table).where(table.c.token_id == token_id, table.c.revoked_at.is_(None))
    revoked = connection.execute(unless_before.values(revoked_at=at))
    row = connection.execute(select(table).where(table.c.token_id == token_id)).mappings().one_or_none()
    if row is None:
        raise LetterNotFound(f"no token {token_id!r} is in the store")
    token = _to_token(row)
    if revoked.rowcount:
        auditing.record(connection, about_token(act, token), ())
    return token


def _to_token(row: RowMapping) -> Token:
    values: dict[str, Any] = {name: row[name] for name in _NAMES}
    return Token(**values | {"role": Role(row["role"])})
