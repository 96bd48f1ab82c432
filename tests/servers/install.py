"""What the tests need and a machine may lack: found, or installed with apt where that is allowed."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PATIENCE = 300  # seconds for one call of apt

# No answer is waited for, and another apt at work is.
APT = ("apt-get", "--quiet", "--yes", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::http::Timeout=20")


class Unavailable(Exception):
    """Something the tests need cannot be had here; says what, why, and what to do about it."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} {why}")
        self.name = name
        self.why = why


@dataclass(frozen=True, slots=True)
class Needed:
    """A program or a library: how it is found, the package to install, and the package that a person would choose."""

    name: str
    find: Callable[[], Path | None]
    package: str
    advice: str


def require(needed: Needed) -> Path:
    """Where it is, after installing it at most once per run. Raises `Unavailable`."""
    if found := needed.find():
        return found
    problem = install(needed.package, needed.find)
    if found := needed.find():
        return found
    why = f"is not installed and could not be installed: {problem}; apt install {needed.advice}"
    raise Unavailable(needed.name, why)


def on_path(*names: str) -> Callable[[], Path | None]:
    """Look for a program under any of these names."""

    def find() -> Path | None:
        return next((Path(found) for name in names if (found := shutil.which(name))), None)

    return find


@cache
def install(package: str, find: Callable[[], Path | None]) -> str:
    """Install a package, or try to, once in a run; return what went wrong.

    Downloaded first: a slow network may be given up at any time, a half-installed package leaves a mess.
    """
    if shutil.which("apt-get") is None:
        return "there is no apt here"
    if not _may_install():
        return "neither root nor sudo without a password"
    with alone():
        if find():  # another run has done it meanwhile
            return ""
        if _run("install", "--no-install-recommends", "--download-only", package):
            _run("update")
        return _run("install", "--no-install-recommends", package)


def _may_install() -> bool:
    return os.geteuid() == 0 or not _failure(["sudo", "--non-interactive", "true"])


def _run(*arguments: str) -> str:
    sudo = () if os.geteuid() == 0 else ("sudo", "--non-interactive")
    return _failure([*sudo, "env", "DEBIAN_FRONTEND=noninteractive", *APT, *arguments])


def _failure(command: Sequence[str]) -> str:
    """Run a command; return the last words of one that failed."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
    except FileNotFoundError:
        return f"there is no {command[0]} here"
    except subprocess.TimeoutExpired:
        return f"no end after {PATIENCE} s"
    except subprocess.CalledProcessError as failed:
        words = (failed.stderr or failed.stdout).strip().splitlines()
        return words[-1] if words else f"exit code {failed.returncode}"
    return ""


@contextmanager
def alone() -> Iterator[None]:
    """One process at a time, of this run or another."""
    with (Path(tempfile.gettempdir()) / f"redrive-install-{os.geteuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
