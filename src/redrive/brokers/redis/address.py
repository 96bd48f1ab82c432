"""Where Redis is, as a URL says it: one server, a server found by sentinels, or a cluster."""

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from redis.asyncio.connection import URL_QUERY_ARGUMENT_PARSERS, to_bool

from redrive.core.errors import ConfigError
from redrive.core.url import mask_url

SCHEMES: Final = ("redis", "rediss", "unix", "redis+sentinel", "redis+cluster")
PAYLOAD: Final = "payload"
MAP: Final = "*"
"""As the name of the payload field: the whole field map is the payload."""

_NOT_FOR_URLS: Final = frozenset({"decode_responses", "protocol", "socket_timeout"})
"""Options of the client that a URL may carry for others: answers are read as we need them, and reads may wait."""
_PARSERS: Final = {**URL_QUERY_ARGUMENT_PARSERS, "ssl": to_bool}
_SENTINEL_PORT: Final = 26379
_PORT: Final = 6379
_EXAMPLES: Final = (
    "redis://host:6379/0, rediss://…, unix:///path/redis.sock, redis+sentinel://host:26379,host:26379/primary"
    " or redis+cluster://host:6379,host:6379"
)


@dataclass(frozen=True, slots=True)
class Durability:
    """How many replicas must have a message before a publish returns."""

    replicas: int = 0

    @classmethod
    def of(cls, text: str) -> "Durability":
        """From `local` or `wait:1`. Raises `ValueError`."""
        verb, _, number = text.partition(":")
        if text == "local":
            return cls()
        if verb == "waitaof":  # a promise about disks that nobody has seen kept is none
            raise ValueError("durability: waitaof has not been tried on a server that knows it: use wait:1")
        if verb != "wait" or not number.isdecimal() or int(number) < 1:
            raise ValueError(f"durability: expected local or wait:1 (a number of replicas), got {text!r}")
        return cls(int(number))


@dataclass(frozen=True, slots=True)
class Address:
    """A URL, taken apart. `options` are redis-py's own; `hosts` are those of sentinels or of a cluster."""

    scheme: str
    url: str
    payload: bytes = PAYLOAD.encode()
    durability: Durability = field(default_factory=Durability)
    hosts: tuple[tuple[str, int], ...] = ()
    primary: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_cluster(self) -> bool:
        """Whether a queue's keys must be in one slot."""
        return self.scheme == "redis+cluster"

    @classmethod
    def of(cls, url: str) -> "Address":
        """From a URL. Raises `ConfigError` with every mistake in it; a password is never told."""
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            raise ConfigError(f"broker: expected a URL such as {_EXAMPLES}, got {mask_url(url)!r}")
        told = parse_qsl(parts.query, keep_blank_values=True)
        query = {name: value for name, value in told if name not in _NOT_FOR_URLS}
        mistakes: list[str] = []
        payload = query.pop("payload", PAYLOAD)
        if not payload:
            mistakes.append("payload: expected the name of a field, or * for the whole field map")
        try:
            durability = Durability.of(query.pop("durability", "local"))
        except ValueError as error:
            durability = Durability()
            mistakes.append(str(error))
        rest = url.partition("?")[0] + (f"?{urlencode(query)}" if query else "")
        if parts.scheme in ("redis", "rediss", "unix"):
            db = "" if parts.scheme == "unix" else parts.path.strip("/")
            if db and not db.isdecimal():  # the client would take the first database without a word
                mistakes.append(f"broker: expected the number of a database after the host, got {db!r}")
            if mistakes:
                raise ConfigError(mistakes)
            return cls(parts.scheme, rest, payload.encode(), durability)
        userinfo, _, hosts = parts.netloc.rpartition("@")
        port = _SENTINEL_PORT if parts.scheme == "redis+sentinel" else _PORT
        found = _hosts(hosts, port, mistakes)
        primary, _, db = parts.path.lstrip("/").partition("/")
        if parts.scheme == "redis+sentinel" and not primary:
            mistakes.append("broker: expected the primary's name, as in redis+sentinel://host:26379/primary")
        if db and not db.isdecimal():
            mistakes.append(f"broker: expected the number of a database after the primary's name, got {db!r}")
        options = _options(userinfo, query, db, mistakes)
        if mistakes:
            raise ConfigError(mistakes)
        return cls(parts.scheme, rest, payload.encode(), durability, found, unquote(primary), options)


def _hosts(text: str, port: int, mistakes: list[str]) -> tuple[tuple[str, int], ...]:
    found = []
    for host in text.split(","):
        bare = host.strip()
        name, _, number = (bare, "", "") if ":" not in bare or bare.endswith("]") else bare.rpartition(":")
        if not name or (number and not number.isdecimal()):
            mistakes.append(f"broker: expected hosts as host:port,host:port, got {host!r}")
        else:
            found.append((name.strip("[]"), int(number) if number else port))
    return tuple(found)


def _options(userinfo: str, query: dict[str, str], db: str, mistakes: list[str]) -> dict[str, Any]:
    user, _, password = userinfo.partition(":")
    options: dict[str, Any] = {}
    for name, value in query.items():
        parser = _PARSERS.get(name.removeprefix("sentinel_"), str)
        try:
            options[name] = parser(value)
        except (TypeError, ValueError):
            mistakes.append(f"broker: {name}: not a value that the client knows: {value!r}")
    if user:
        options["username"] = unquote(user)
    if password:
        options["password"] = unquote(password)
    if db.isdecimal():
        options["db"] = int(db)
    return options
