"""Who may call the service: roles, and the tokens that carry them. A token's secret is kept nowhere, only its hash."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

SECRET_PREFIX = "rdt_"  # noqa: S105 - what every secret begins with: scanners for leaked ones look for it

_SECRET = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_-]{{43}}")


class Role(StrEnum):
    """What a caller may do, as a ladder: each role includes those before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Whether this role may do whatever the other one may."""
        ladder = [*Role]
        return ladder.index(self) >= ladder.index(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known of a token: everything but its secret. `name` is who the audit says was calling."""

    token_id: str
    name: str
    role: Role
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it opens the door now. Neither at the instant of its expiry nor from its revocation on does it."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def is_secret(text: str) -> bool:
    """Whether a text has the form of a token's secret: only then is it worth looking for."""
    return _SECRET.fullmatch(text) is not None


def secret_hash(secret: str) -> str:
    """What is kept of a secret. It is random, of 256 bits: a slow hash would add nothing."""
    return hashlib.sha256(secret.encode()).hexdigest()
