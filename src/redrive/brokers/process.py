"""Telling a dead process from a silent one.

A lease is the last resort. A worker that was killed on this machine can be proven dead at once: the pid is gone, or
belongs to a process that started at another time. Whatever cannot be read proves nothing.
"""

import os
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_START_TIME = 19  # of the fields after the name, which may itself hold spaces and brackets


def identity() -> str:
    """What others need to prove this process dead; empty where the system does not tell."""
    return _identity(os.getpid())


def is_dead(process: str) -> bool:
    """Whether the process of this identity is proven to have ended. False whenever there is any doubt."""
    here = identity()
    if not process or not here or process == here:
        return False
    *place, pid, started = process.split(" ")
    if place != here.split(" ")[:2]:  # another boot, machine or container: its pids mean nothing here
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    state, now_started = _stat(int(pid))
    if not now_started:
        return False
    return now_started != started or (state in {"Z", "X"} and _threads(int(pid)) <= 1)


@cache
def _identity(pid: int) -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = (_PROC / "self/ns/pid").readlink()
    except OSError:
        return ""
    _, started = _stat(pid)
    return f"{boot} {namespace} {pid} {started}" if started else ""


def _stat(pid: int) -> tuple[str, str]:
    """The state and the start time of a process, both empty if they cannot be read."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return "", ""
    return (fields[0], fields[_START_TIME]) if len(fields) > _START_TIME else ("", "")


def _threads(pid: int) -> int:
    """How many threads a process has: a first thread that ended says nothing about the others."""
    try:
        return len(list((_PROC / str(pid) / "task").iterdir()))
    except OSError:
        return 2
