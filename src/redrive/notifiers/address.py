"""Where a notifier is: its URL taken apart, and whether strangers' machines may be reached there."""

from base64 import b64encode
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import unquote, urlsplit

_NAT64: Final = ip_network("64:ff9b::/96")
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A URL over HTTP: `target` is its path with its query, `login` the header that its user and password make."""

    scheme: str
    host: str
    port: int
    target: str
    login: dict[str, str]

    @classmethod
    def of(cls, url: str) -> "Address":
        """The address of a URL. Raises `ValueError`, which does not repeat it."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ValueError("no URL") from None
        if parts.scheme not in _PORTS or not parts.hostname or parts.fragment or not url.isascii() or " " in url:
            raise ValueError("no URL")
        login = {}
        if parts.username:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            login["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], target, login)


def is_public(address: str) -> bool:
    """Whether an IP address is anybody's on the internet: not this machine, not its network, not its cloud's own.

    An IPv4 address inside of an IPv6 one is looked at too.
    """
    found = ip_address(address.partition("%")[0])
    inner = _inner(found)
    return found.is_global and not found.is_multicast if inner is None else inner.is_global and not inner.is_multicast


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one leads to, if it does."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
