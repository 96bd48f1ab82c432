"""URLs as they may be shown: without what opens the door."""

import re

# A password ends before the next URL begins: that keeps a text full of `://` from taking quadratic time.
_USER = re.compile(r"(?<=://)(?:([^\s/?#:@]*):(?:(?!://)[^\s\"'<>])*|[^\s/?#:@]+)@")
_QUERY = re.compile(r"([?&][\w.-]*(?:password|passwd|secret|token|api_?key)=)[^\s&#\"'<>]*", re.IGNORECASE)

_PLACE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@]+(?=[/?#]|$)")


def mask_url(text: str) -> str:
    """The text with the password of every URL in it masked; a lone user name too: NATS takes it for a token.

    >>> mask_url("cannot reach redis://shop:s3cret@cache:6379/0?db=1")
    'cannot reach redis://shop:***@cache:6379/0?db=1'
    """
    if "://" not in text:
        return text
    return _QUERY.sub(r"\1***", _USER.sub(_masked, text))


def _masked(found: re.Match[str]) -> str:
    user: str | None = found[1]
    return "***@" if user is None else f"{user}:***@"


def mask_path(url: str) -> str:
    """A URL whose path opens the door, as those of chat services do: only where it leads to is left.

    Where a password may stand before that, not even so much.

    >>> mask_path("https://hooks.example.org/services/T0/B0/s3cret?x=1")
    'https://hooks.example.org/***'
    """
    found = None if "@" in url else _PLACE.match(url)
    return "***" if found is None else f"{found[0]}/***"
