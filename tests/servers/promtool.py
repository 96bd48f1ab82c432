"""Prometheus' own tool, for checking what we write for it.

Its package also starts a server, which nobody asked for: so it is unpacked beside the other temporary files instead.
"""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.servers import roll
from tests.servers.install import Unavailable, alone, on_path

PACKAGE = "prometheus"
PATIENCE = 120


@cache
def promtool() -> Path:
    """Where it is, unpacked from the system's package if it is not installed. Raises `Unavailable`."""
    folder = Path(tempfile.gettempdir()) / f"redrive-promtool-{os.geteuid()}"
    found = on_path("promtool")() or _unpacked(folder) / "usr" / "bin" / "promtool"
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    roll.used("promtool", said.split()[2])
    return found


def _unpacked(folder: Path) -> Path:
    with alone(), tempfile.TemporaryDirectory(prefix="redrive-promtool-") as name:
        if folder.exists():
            return folder
        at = Path(name)
        _run("apt-get", "download", "--quiet", PACKAGE, at=at)
        (package,) = at.glob("*.deb")
        _run("dpkg-deb", "--extract", str(package), "unpacked", at=at)
        shutil.move(at / "unpacked", folder)
    return folder


def _run(*command: str, at: Path) -> None:
    try:
        subprocess.run(command, cwd=at, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except FileNotFoundError:
        raise Unavailable("promtool", f"is not installed, and there is no {command[0]} here") from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failed:
        words = (str(failed.stderr or "").strip().splitlines() or [str(failed)])[-1]
        why = f"is not installed and could not be unpacked: {words}; apt install {PACKAGE}"
        raise Unavailable("promtool", why) from failed
