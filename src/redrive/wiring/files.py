"""From a URL to a file."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from redrive.core.errors import ConfigError


def sqlite_path(url: str, *, what: str) -> Path:
    """The file of `sqlite:///file.db`. Raises `ConfigError`, which names the setting as `what`."""
    parts = urlsplit(url)
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or parts.query or parts.fragment or path in ("", ":memory:"):
        raise ConfigError(f"{what}: expected sqlite:///file.db or sqlite:////absolute/file.db, got {url!r}")
    return Path(path)
