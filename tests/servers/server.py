"""A program that the tests start, strike and stop."""

import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 30  # seconds after which something that does not happen is a failure

RUNNING: list["Server"] = []


class StartFailed(Exception):
    """A server ended or said nothing where it should have become ready; with the end of its log."""


class Server(ABC):
    """One process in a folder of its own, which also gets its log.

    It dies with the thread that started it, so with the tests, however they end, where the system can do this. May be
    started again, at the same place, as often as one likes. Every call returns when its effect is there.
    """

    patience: float = PATIENCE  # for it to become ready

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log = folder / "log"
        self.log.touch()
        self._heard = 0
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> Sequence[str]:
        """How to start it in the foreground."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it answers."""

    def environment(self) -> Mapping[str, str]:
        """What it must find in its environment, besides what we have in ours."""
        return {}

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError(f"{type(self).__name__} is not running")
        return self._process.pid

    def is_process(self, pid: str) -> bool:
        """Whether it runs, as the process of this number."""
        return self._process is not None and pid == f"{self._process.pid}"

    def start(self) -> None:
        """Start, and wait until it is ready. Raises `StartFailed`."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start, and do not wait: for one that is ready only when others have come up too."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*dies_with_us(), *self.command()],
                env={**os.environ, **self.environment()},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C is for the tests, which then stop it
            )
        RUNNING.append(self)

    def wait_until_ready(self) -> None:
        """Wait until it is ready, after `launch`. Raises `StartFailed`."""
        try:
            ready = f"{type(self).__name__} ready"
            until(lambda: self._has_ended() or self.is_ready(), what=ready, patience=self.patience)
        except TimeoutError:
            self.kill()
            raise StartFailed(self.last_words()) from None
        if self._has_ended():
            self.kill()
            raise StartFailed(self.last_words())

    def stop(self) -> None:
        """Ask it to end, and wait until it has. Without effect if it is not running."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Let it die at once. Without effect if it is not running."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """Let it stand still: connections stay open and nobody answers, until `resume`."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def last_words(self) -> str:
        """The end of what it has said since `forget`."""
        said = self.log.read_bytes()[self._heard :].decode(errors="replace")
        return "\n".join(said.splitlines()[-30:])

    def forget(self) -> None:
        """What it has said so far is of no interest any more."""
        self._heard = self.log.stat().st_size

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        RUNNING.remove(self)
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)  # it may be paused
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(condition: Callable[[], object], *, what: str, patience: float = PATIENCE) -> None:
    """Wait until something is so. Raises `TimeoutError`."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {patience:g} s: {what}")
        time.sleep(0.01)


def dies_with_us() -> Sequence[str]:
    """What to put before a command so that it is killed when the thread that started it ends."""
    return ("setpriv", "--pdeathsig", "KILL", "--") if shutil.which("setpriv") else ()
