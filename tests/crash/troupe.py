"""The processes of a run: started here, found through the journal, and none left when it is over, however it ends."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.crash.journal import Reader, Word
from tests.crash.scenario import FLIPPED, FOLDER, Site
from tests.servers.server import dies_with_us

ROOT = Path(__file__).parents[2]

Process = subprocess.Popen[bytes]


class Troupe:
    """Starts each program in a session of its own, so that its children can be told from anybody else's."""

    def __init__(self, site: Site, reader: Reader) -> None:
        self._site = site
        self._reader = reader
        self._groups: list[Process] = []
        self._flipped = False

    def flip(self) -> None:
        """Whatever starts from now on takes every fate for ok."""
        self._flipped = True

    def start(self, program: str) -> Process:
        """Start one of the harness's programs."""
        env = {**os.environ, FOLDER: str(self._site.folder), "REDRIVE_LOG_LEVEL": "error"}
        if self._flipped:
            env[FLIPPED] = "1"
        with (self._site.folder / "stderr").open("ab") as stderr:
            process = subprocess.Popen(
                [*dies_with_us(), sys.executable, "-m", f"tests.crash.{program}"],
                cwd=ROOT,
                env=env,
                stderr=stderr,
                start_new_session=True,
            )
        self._groups.append(process)
        return process

    def alive(self, role: str) -> list[int]:
        """The supervised processes of this role."""
        born = self._reader.of(Word.BORN)
        return [entry.pid for entry in born if entry.note == role and self._is_ours(entry.pid)]

    def strike(self, pid: int, number: signal.Signals, *, kind: str = "") -> None:
        """Send a signal to one of our processes, if it is still there; noted first if it has a kind."""
        if not self._is_ours(pid):
            return
        if kind:
            self._site.journal.note(Word.FAULT, pid=pid, note=kind)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def end(self) -> None:
        """End everything that was started here."""
        for process in self._groups:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _is_ours(self, pid: int) -> bool:
        """A number may have passed to somebody else's process; the group of that one is not ours."""
        try:
            return os.getpgid(pid) in {process.pid for process in self._groups}
        except ProcessLookupError:
            return False
