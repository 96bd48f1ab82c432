"""The book of tokens: who may call, each beside the hash of a secret that is kept nowhere."""

import hmac
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from redrive.core.access import Role, Token
from redrive.core.audit import Act
from redrive.core.errors import LetterNotFound
from redrive.stores.exact import instant, microseconds, unescaped
from redrive.stores.mongo import auditing
from redrive.stores.mongo.documents import Document
from redrive.stores.mongo.draft import Draft
from redrive.stores.mongo.shelves import DOWN, TOKENS, UP, Shelves
from redrive.stores.mongo.values import from_maybe, to_text
from redrive.stores.witness import about_token

_LOOKED_UP = 16  # digits of a hash that the database compares; what its timing could tell ends with them


async def put(draft: Draft, token: Token, *, sha256: str, act: Act) -> None:
    """Keep a token, once."""
    if await draft.shelves.one(TOKENS, {"_id": to_text(token.token_id)}) is None:
        draft.add(TOKENS, _to_document(token, sha256))
        await auditing.record(draft, about_token(act, token), ())


async def by_hash(shelves: Shelves, sha256: str) -> Token | None:
    """The token whose secret has this hash."""
    begins = sha256[:_LOOKED_UP]
    found = await shelves.many(TOKENS, {"sha256": {"$gte": begins, "$lt": f"{begins}g"}})
    return next((_to_token(one) for one in found if hmac.compare_digest(one["sha256"], sha256)), None)


async def every(shelves: Shelves) -> list[Token]:
    """All tokens, the latest first."""
    return [_to_token(one) for one in await shelves.many(TOKENS, {}, order=[("created_at", DOWN), ("_id", UP)])]


async def revoke(draft: Draft, token_id: str, *, at: datetime, act: Act) -> Token:
    """End a token, once."""
    found = await draft.shelves.one(TOKENS, {"_id": to_text(token_id)})
    if found is None:
        raise LetterNotFound(f"no token {token_id!r} is in the store")
    token = _to_token(found)
    if token.revoked_at is None:
        token = replace(token, revoked_at=at)
        draft.set(TOKENS, found["_id"], {"revoked_at": microseconds(at)})
        await auditing.record(draft, about_token(act, token), ())
    return token


def _to_document(token: Token, sha256: str) -> Document:
    return {
        "_id": to_text(token.token_id),
        "sha256": sha256,
        "name": to_text(token.name),
        "role": token.role.value,
        "created_at": microseconds(token.created_at),
        "created_by": to_text(token.created_by),
        "expires_at": microseconds(token.expires_at),
        "revoked_at": microseconds(token.revoked_at),
    }


def _to_token(document: Mapping[str, Any]) -> Token:
    return Token(
        token_id=unescaped(document["_id"]),
        name=unescaped(document["name"]),
        role=Role(document["role"]),
        created_at=instant(document["created_at"]),
        created_by=unescaped(document["created_by"]),
        expires_at=from_maybe(document["expires_at"]),
        revoked_at=from_maybe(document["revoked_at"]),
    )
