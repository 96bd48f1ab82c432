"""Broker and store in one SQLite file: the store's write lock would be on the way of every ack."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from redrive.core.errors import ConfigError


def check_apart(broker: str, store: str) -> None:
    """Raise `ConfigError` if both are the same SQLite file."""
    if mistake := is_same_file(broker, store):
        raise ConfigError(mistake)


def is_same_file(broker: str, store: str) -> str | None:
    """The mistake, if both are the same SQLite file."""
    if (file := file_of(store)) is not None and file == file_of(broker):
        return f"store: expected another file than the broker's, got {file.name} for both"
    return None


def file_of(url: str) -> Path | None:
    """The file of an SQLite URL, however it is written; None for anything else."""
    parts = urlsplit(url)
    return Path(unquote(parts.path).removeprefix("/")).resolve() if parts.scheme == "sqlite" else None
