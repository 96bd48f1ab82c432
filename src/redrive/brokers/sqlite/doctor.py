"""What could lose messages here, and what to do about it. Each check names the loss it bears on."""

import asyncio
import os
import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from redrive.brokers.sqlite.connection import KEPT_WAL_BYTES, connect
from redrive.brokers.sqlite.errors import translate
from redrive.brokers.sqlite.space import MIB, free_bytes
from redrive.core.errors import RedriveError
from redrive.core.ports import Finding

NETWORK_FILESYSTEMS: Final = frozenset(
    {"9p", "afs", "ceph", "cifs", "davfs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs", "lustre", "nfs"}
    | {"nfs4", "smb3", "smbfs"}
)
MEMORY_FILESYSTEMS: Final = frozenset({"ramfs", "tmpfs"})


async def examine(path: str, *, reserve: int) -> Sequence[Finding]:
    """Look at the file without stopping anybody; reads all of it."""
    return await asyncio.to_thread(_examine, path, reserve)


def _examine(path: str, reserve: int) -> list[Finding]:
    findings = [_filesystem(path), _space(path, reserve)]
    if not Path(path).exists():
        return [*findings, Finding("file", "ok", f"{path} is not there yet; it is made when it is first used")]
    try:
        connection = connect(path)
    except (sqlite3.Error, RedriveError) as error:
        why = str(translate(error, path=path))
        return [
            *findings,
            Finding("file", "fail", why, "every message in it", "see that the file can be opened and written"),
        ]
    try:
        return [*_settings(connection), *findings, _integrity(connection, path), _permissions(path), _wal(path)]
    finally:
        connection.close()


def _settings(connection: sqlite3.Connection) -> list[Finding]:
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    return [
        Finding(
            "journal",
            "ok" if mode == "wal" else "fail",
            f"journal_mode is {mode}",
            "readers and writers that keep each other out until messages time out",
            "" if mode == "wal" else "put the file on a local disk, where SQLite can keep a write-ahead log",
        ),
        Finding(
            "fsync",
            "ok" if synchronous >= 2 else "fail",  # noqa: PLR2004 - FULL
            f"synchronous is {synchronous} (2 is FULL)",
            "acknowledged messages lost in a power cut",
            "" if synchronous >= 2 else "use a build of SQLite that lets synchronous be FULL",  # noqa: PLR2004
        ),
    ]


def _filesystem(path: str) -> Finding:
    kind = filesystem_of(path)
    if kind in NETWORK_FILESYSTEMS:
        return Finding(
            "filesystem",
            "fail",
            f"the file is on a network filesystem ({kind})",
            "a damaged file: locks and shared memory do not work across machines",
            "move the file to a local disk; for several machines use a broker with a server",
        )
    if kind in MEMORY_FILESYSTEMS:
        return Finding(
            "filesystem",
            "warn",
            f"the file is in memory ({kind})",
            "every message, when the machine restarts",
            "move the file to a disk",
        )
    return Finding("filesystem", "ok", f"local ({kind or 'not known'})", "a damaged file")


def _space(path: str, reserve: int) -> Finding:
    free = free_bytes(path)
    prevents = "acks that no longer fit, so that finished work is done again"
    if free is None:
        advice = "create the folder"
        return Finding("space", "fail", f"there is no folder {Path(path).parent}", prevents, advice)
    found = f"{free // MIB} MiB free, of which {reserve // MIB} MiB are kept in reserve"
    if free < reserve:
        return Finding("space", "fail", found, prevents, "make room: nothing is published or handed out until then")
    if free < 4 * reserve:
        return Finding("space", "warn", found, prevents, "make room soon")
    return Finding("space", "ok", found, prevents)


def _integrity(connection: sqlite3.Connection, path: str) -> Finding:
    prevents = "messages in damaged pages"
    advice = "stop all workers, copy the file and its -wal, and restore from a copy or with `sqlite3 FILE .recover`"
    try:
        found = [text for (text,) in connection.execute("PRAGMA quick_check(10)")]
    except sqlite3.Error as error:
        return Finding("integrity", "fail", str(translate(error, path=path)), prevents, advice)
    if found != ["ok"]:
        return Finding("integrity", "fail", "; ".join(found), prevents, advice)
    return Finding("integrity", "ok", "no page is damaged", prevents)


def _permissions(path: str) -> Finding:
    mode = stat.S_IMODE(Path(path).stat().st_mode)
    prevents = "messages read or changed by other users of this machine"
    if mode & stat.S_IWOTH:
        return Finding(
            "permissions", "fail", f"everyone may write to the file ({mode:o})", prevents, f"chmod o-rwx {path}"
        )
    if mode & stat.S_IROTH:
        return Finding("permissions", "warn", f"everyone may read the file ({mode:o})", prevents, f"chmod o-rwx {path}")
    return Finding("permissions", "ok", f"for owner and group only ({mode:o})", prevents)


def _wal(path: str) -> Finding:
    try:
        size = Path(f"{path}-wal").stat().st_size
    except FileNotFoundError:
        size = 0
    found = f"the write-ahead log has {size / MIB:.1f} MiB"
    prevents = "a disk filled by a log that a long reader keeps from being emptied"
    if size > 4 * KEPT_WAL_BYTES:
        return Finding("log", "warn", found, prevents, "end whatever has been reading the file for a long time")
    return Finding("log", "ok", found, prevents)


def filesystem_of(path: str, *, mounts: Path = Path("/proc/mounts")) -> str:
    """The kind of filesystem that a path is on, or nothing where the system does not tell."""
    real = os.path.realpath(path)
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        _, raw, found, *_ = line.split(" ")
        point = raw.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        if len(point) >= len(best) and (real == point or real.startswith(point.rstrip("/") + "/")):
            best, kind = point, found  # of two mounts at one place, the later lies on top
    return kind
