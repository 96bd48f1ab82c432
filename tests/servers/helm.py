"""Helm, which is in no package repository: built from its Go module, once on a machine."""

import fcntl
import json
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.servers import roll
from tests.servers.install import Unavailable, on_path

MODULE = "helm.sh/helm/v3"
VERSION = "v3.19.2"
PATIENCE = 1200  # seconds to build it on a slow machine


@cache
def helm() -> Path:
    """Where it is, built if it is not installed and Go is at hand. Raises `Unavailable`."""
    found = on_path("helm")() or _built()
    roll.used("helm", VERSION if found.parent.name == VERSION else "")
    return found


def _built() -> Path:
    program = Path(tempfile.gettempdir()) / f"redrive-helm-{os.geteuid()}" / VERSION / "helm"
    if not program.exists():
        go = on_path("go")()
        if go is None:
            raise Unavailable("helm", "is not installed, and there is no Go here to build it; see https://helm.sh")
        program.parent.mkdir(parents=True, exist_ok=True)
        with program.with_suffix(".lock").open("w") as lock:  # takes minutes: nobody else should build it too
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                source = json.loads(_run(str(go), "mod", "download", "-json", f"{MODULE}@{VERSION}", at=program.parent))
                new = program.with_suffix(".new")
                _run(str(go), "build", "-o", str(new), "./cmd/helm", at=Path(source["Dir"]))
                new.rename(program)
    return program


def _run(*command: str, at: Path) -> str:
    try:
        done = subprocess.run(command, cwd=at, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failed:
        words = (str(failed.stderr or "").strip().splitlines() or [str(failed)])[-1]
        raise Unavailable("helm", f"is not installed and could not be built: {words}") from failed
    return done.stdout
