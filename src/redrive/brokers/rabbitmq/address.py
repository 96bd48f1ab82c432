"""Where RabbitMQ is, as a URL says it."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from redrive.core.errors import ConfigError
from redrive.core.url import mask_url

_HEARTBEAT: Final = 20
_OF_TLS: Final = frozenset({"cafile", "capath", "certfile", "keyfile", "no_verify_ssl"})


@dataclass(frozen=True, slots=True)
class Address:
    """A URL, taken apart. A server ends a connection of which it has not heard for two to three `heartbeat` seconds."""

    url: str = field(repr=False)
    shown: str = ""
    heartbeat: int = _HEARTBEAT

    @classmethod
    def of(cls, url: str) -> "Address":
        """From `amqp://[user:password@]host[:port][/vhost][?heartbeat=20]`, or `amqps://` with files for TLS.

        Raises `ConfigError` with every mistake.
        """
        parts = urlsplit(url)
        mistakes: list[str] = []
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname or parts.fragment:
            mistakes.append(
                f"broker: expected a URL such as amqp://user:password@host:5672/vhost, got {mask_url(url)!r}"
            )
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        beat = query.pop("heartbeat", str(_HEARTBEAT))
        if not beat.isdecimal() or int(beat) < 1:
            mistakes.append(f"broker: heartbeat: expected whole seconds from 1, got {beat!r}")
        for name in query:
            if name not in _OF_TLS:
                known = ", ".join(sorted(_OF_TLS))
                mistakes.append(f"broker: expected heartbeat, or for amqps:// {known}, got {name!r}")
        if mistakes:
            raise ConfigError(mistakes)
        whole = urlunsplit(parts._replace(query=urlencode({**query, "heartbeat": beat})))
        return cls(whole, mask_url(url), int(beat))
