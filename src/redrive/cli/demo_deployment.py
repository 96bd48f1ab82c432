"""The version of the demo's app: a file beside its queue says which one is deployed."""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def deployed_version(broker: str) -> str:
    """The version that the file beside the broker's says; `1` if there is none."""
    file = _file_beside(broker)
    return file.read_text("utf-8") if file.exists() else "1"


def deploy(broker: str, *, version: str) -> None:
    """Have processes that start from now on be of this version."""
    _file_beside(broker).write_text(version, "utf-8")


def _file_beside(broker: str) -> Path:
    return Path(unquote(urlsplit(broker).path).removeprefix("/")).with_name("version")
