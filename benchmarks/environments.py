"""Virtual environments with other people's packages: made once, kept in the user's cache."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class NotInstallable(Exception):
    """An environment could not be made; the text says why."""


def environment(requirements: Sequence[str]) -> str:
    """The Python of an environment with these packages and what they need. Raises `NotInstallable`."""
    folder = folder_of(requirements)
    python = str(folder / "bin" / "python")
    ready = folder / "ready"
    if ready.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    try:
        for words in (["-m", "venv", str(folder)], ["-m", "pip", "install", "--quiet", *requirements]):
            starter = python if "pip" in words else sys.executable
            subprocess.run([starter, *words], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise NotInstallable(error.stderr.strip() or str(error)) from error
    except OSError as error:
        raise NotInstallable(str(error)) from error
    ready.touch()
    return python


def folder_of(requirements: Sequence[str]) -> Path:
    """Where an environment is kept: other requirements or another Python have another place."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    marks = "\n".join([sys.version, sys.prefix, *requirements])
    name = requirements[0].partition("=")[0].partition("[")[0]
    return Path(cache) / "redrive-bench" / f"{name}-{hashlib.sha256(marks.encode()).hexdigest()[:12]}"
