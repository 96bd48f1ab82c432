"""Where NATS is, as a URL says it, and what streams that we begin are to be like."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from redrive.core.duration import as_duration
from redrive.core.errors import ConfigError
from redrive.core.url import mask_url

SCHEMES: Final = ("nats", "tls")
WINDOW: Final = timedelta(hours=1)
_PORT: Final = 4222
_EXAMPLE: Final = "nats://host:4222,host:4222 or tls://user:password@host:4222"
_FLAGS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What streams that we begin are like.

    `replicas` is of all of them. The rest is of DLQs: `strict` gives each letter a subject of its own, `window` is for
    how long the server knows a letter again, at least; the others bound a DLQ, which then refuses what is too much.
    """

    replicas: int = 1
    strict: bool = False
    window: timedelta = WINDOW
    max_age: timedelta = timedelta()
    max_bytes: int = -1
    max_msgs: int = -1


@dataclass(frozen=True, slots=True)
class Address:
    """A URL, taken apart. `options` are those of the client."""

    servers: tuple[str, ...]
    terms: Terms = field(default_factory=Terms)
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, url: str) -> "Address":
        """From `nats://[user:password@|token@]host:4222,host:4222?…`. Raises `ConfigError` with every mistake in it."""
        parts = urlsplit(url)
        mistakes: list[str] = []
        userinfo, _, hosts = parts.netloc.rpartition("@")
        if parts.scheme not in SCHEMES or not hosts or parts.path not in ("", "/"):
            mistakes.append(f"broker: expected a URL such as {_EXAMPLE}, got {mask_url(url)!r}")
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        terms = Terms(
            replicas=_count(query, "replicas", mistakes) or 1,
            strict=_flag(query, "dlq.strict", mistakes),
            window=_duration(query, "dlq.window", mistakes) or WINDOW,
            max_age=_duration(query, "dlq.max_age", mistakes) or timedelta(),
            max_bytes=_count(query, "dlq.max_bytes", mistakes) or -1,
            max_msgs=_count(query, "dlq.max_msgs", mistakes) or -1,
        )
        if terms.max_age and terms.max_age < terms.window:
            mistakes.append("broker: dlq.max_age: expected no less than dlq.window, for which letters are known again")
        options = {"user_credentials": creds} if (creds := query.pop("credentials", "")) else {}
        known = "credentials, replicas, dlq.strict, dlq.window, dlq.max_age, dlq.max_bytes, dlq.max_msgs"
        mistakes += [f"broker: expected one of {known}, got {name!r}" for name in query]
        user, colon, password = userinfo.partition(":")
        if colon:
            options |= {"user": unquote(user), "password": unquote(password)}
        elif user:
            options |= {"token": unquote(user)}
        if mistakes:
            raise ConfigError(mistakes)
        return cls(tuple(f"{parts.scheme}://{_with_port(host)}" for host in hosts.split(",")), terms, options)


def _count(query: dict[str, str], name: str, mistakes: list[str]) -> int | None:
    text = query.pop(name, None)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        mistakes.append(f"broker: {name}: expected a number from 1, got {text!r}")
        return None
    return int(text)


def _flag(query: dict[str, str], name: str, mistakes: list[str]) -> bool:
    text = query.pop(name, "false")
    if text not in _FLAGS:
        mistakes.append(f"broker: {name}: expected true or false, got {text!r}")
    return _FLAGS.get(text, False)


def _duration(query: dict[str, str], name: str, mistakes: list[str]) -> timedelta | None:
    text = query.pop(name, None)
    if text is None:
        return None
    try:
        return as_duration(text)
    except ValueError as error:
        mistakes.append(f"broker: {name}: {error}")
        return None


def _with_port(host: str) -> str:
    return host if ":" in host and not host.endswith("]") else f"{host}:{_PORT}"
