"""Where a service is, and how to reach it: nobody else is asked, and no certificate is taken on trust."""

import ssl
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit

from redrive.core.errors import ConfigError

CONNECT_WITHIN = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a service. `path` is what a proxy has put before its own paths."""

    url: str
    host: str
    port: int | None
    path: str
    secure: bool

    @classmethod
    def of(cls, url: str) -> "Address":
        """Read a URL. Raises `ConfigError`, which does not repeat what may be a password."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ConfigError(_EXPECTED) from None
        strange = parts.username or parts.password or parts.query or parts.fragment
        if parts.scheme not in ("http", "https") or not parts.hostname or strange or not parts.path.isascii():
            raise ConfigError(_EXPECTED)
        path = parts.path.rstrip("/")
        if any(character <= " " for character in path):
            raise ConfigError(_EXPECTED)
        shown = f"{parts.scheme}://{parts.netloc}{path}"
        return cls(shown, parts.hostname, port, path, secure=parts.scheme == "https")

    def connection(self) -> HTTPConnection:
        """A connection that is not open yet. What answers has to prove that it is this host, where it is `secure`."""
        if self.secure:
            context = ssl.create_default_context()
            return HTTPSConnection(self.host, self.port, timeout=CONNECT_WITHIN, context=context)
        return HTTPConnection(self.host, self.port, timeout=CONNECT_WITHIN)


_EXPECTED = (
    "--url: expected the address of a service, such as http://127.0.0.1:8800 or https://redrive.example.org,"
    " without a user and without ? or #"
)
