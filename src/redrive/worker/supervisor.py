"""The supervisor: keeps worker processes running, and gives suspects a process of their own.

It does no work itself, so nothing a handler does can end it. Each child has a pipe to it: a line per beat. That a child
is dead is the system's word alone: the pipe may outlive it in a process that it forked, or end before it does.
"""

import contextlib
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from redrive.core.event import WorkerDied
from redrive.core.ports import EventSink, Obituary

BAD_CONFIG = 2  # exit status of a child that can never start: no use in trying again
SILENT_AFTER = 30.0
SOON = 5.0  # a child that lives shorter than this died early
PATIENCE = 2  # so many early deaths in a row, and the next start waits
LONGEST_WAIT = 30.0


class Role(StrEnum):
    """What a child process does."""

    WORKER = "worker"
    SUSPECTS = "suspects"
    COLLECTOR = "collector"


@dataclass(frozen=True, slots=True)
class Order:
    """What a child process is started for."""

    role: Role
    index: int
    pipe: int
    obituary: Obituary | None = None


@dataclass(slots=True)
class _Child:
    order: Order
    pid: int
    read: int
    born_at: float
    beat_at: float
    owner: str = ""
    suspects: int = 0
    grace: float = 0.0
    text: bytearray = field(default_factory=bytearray)


class Supervisor:
    """Runs `processes` workers, and one process for suspects at need, until it is told to stop.

    With `collect`, one process more runs the way back; it ends in good order where there is nothing for it to do.
    `command` gives the argument list of a child. `beat` is called while every child turns: the liveness probe. `gone`
    hears of each child that has ended, in whatever way, before another takes its place.
    """

    def __init__(
        self,
        command: Callable[[Order], Sequence[str]],
        *,
        processes: int,
        sink: EventSink,
        beat: Callable[[], None] = lambda: None,
        gone: Callable[[Order], None] = lambda _: None,
        collect: bool = False,
    ) -> None:
        self._command = command
        self._processes = processes
        self._collect = collect
        self._sink = sink
        self._beat = beat
        self._gone = gone
        self._children: dict[int, _Child] = {}  # by the pipe's file descriptor
        self._due: dict[tuple[Role, int], float] = {}  # when a child may be started (again)
        self._early_deaths: dict[tuple[Role, int], int] = {}
        self._obituary: Obituary | None = None
        self._stopping_since: float | None = None
        self._status = 0
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Supervise until SIGTERM or SIGINT, let the children drain as they asked; return the exit status."""
        with self._signals():
            self._due = {(Role.WORKER, index): 0.0 for index in range(self._processes)}
            while self._stopping_since is None or self._children:
                self._start_due()
                for key, _ in self._selector.select(timeout=0.5):
                    self._hear(key.fd)
                self._reap()
                self._look_after()
        return self._status

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        theirs.settimeout(0)
        self._selector.register(ours, selectors.EVENT_READ)
        self._wake_up = ours
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)  # a death wakes the loop at once
        woken = signal.set_wakeup_fd(theirs.fileno())
        try:
            yield
        finally:
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            ours.close()
            theirs.close()

    def _stop(self, *_: object) -> None:
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
            for child in self._children.values():
                _signal(child.pid, signal.SIGTERM)

    def _start_due(self) -> None:
        if self._stopping_since is not None:
            return
        wanted = any(child.suspects for child in self._children.values())
        suspects = (Role.SUSPECTS, self._processes)
        if wanted and suspects not in self._due and not self._has(Role.SUSPECTS):
            self._due[suspects] = 0.0
        if self._collect and any(child.owner for child in self._children.values()):
            self._collect = False  # begun once there is an app that can be loaded; after a death it is due by itself
            self._due[Role.COLLECTOR, self._processes + 1] = 0.0
        now = time.monotonic()
        for role, index in [key for key, due in self._due.items() if due <= now]:
            del self._due[role, index]
            self._start(role, index)

    def _start(self, role: Role, index: int) -> None:
        read, write = os.pipe()
        os.set_inheritable(write, True)
        obituary = self._obituary if role is Role.SUSPECTS else None
        order = Order(role, index, write, obituary)
        try:
            arguments = list(self._command(order))
            pid = os.posix_spawn(sys.executable, arguments, os.environ)
        finally:
            os.close(write)
        now = time.monotonic()
        os.set_blocking(read, False)
        self._children[read] = _Child(order, pid, read, now, now)
        self._selector.register(read, selectors.EVENT_READ)

    def _hear(self, fd: int) -> None:
        child = self._children.get(fd)
        if child is None:
            with contextlib.suppress(BlockingIOError):
                self._wake_up.recv(4096)
            return
        if not self._listen(child):
            self._selector.unregister(fd)  # its end would be heard in every turn

    def _listen(self, child: _Child) -> bool:
        """Take in what a child has said; False once nobody can say more."""
        try:
            heard = os.read(child.read, 65536)
        except BlockingIOError:
            return True
        if not heard:
            return False
        child.beat_at = time.monotonic()
        child.text += heard
        *lines, rest = bytes(child.text).split(b"\n")
        child.text[:] = rest
        for line in lines:
            said = json.loads(line)
            child.owner = said.get("owner", child.owner)
            child.suspects = said.get("suspects", child.suspects)
            child.grace = said.get("grace", child.grace)
        return True

    def _reap(self) -> None:
        for child in list(self._children.values()):
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                self._listen(child)  # its last words
                self._bury(child, status, usage)

    def _bury(self, child: _Child, status: int, usage: resource.struct_rusage) -> None:
        with contextlib.suppress(KeyError):  # not there once its end was heard
            self._selector.unregister(child.read)
        os.close(child.read)
        del self._children[child.read]
        self._gone(child.order)
        code = os.waitstatus_to_exitcode(status)
        key = (child.order.role, child.order.index)
        if self._stopping_since is not None:
            return
        if code == BAD_CONFIG:
            self._status = BAD_CONFIG
            self._stop()
            return
        if code != 0:
            self._mourn(child, _epitaph(code, usage))
        elif child.order.role is Role.SUSPECTS:
            self._obituary = None
            self._forget_suspects()
            return
        elif child.order.role is Role.COLLECTOR:
            return
        self._due[key] = time.monotonic() + self._wait_before(key, lived=time.monotonic() - child.born_at)

    def _mourn(self, child: _Child, text: str) -> None:
        if child.order.role is Role.SUSPECTS:
            self._obituary = Obituary(child.owner, text)
        self._sink.emit(WorkerDied(at=datetime.now(UTC), queue="", owner=child.owner or str(child.pid), text=text))

    def _wait_before(self, key: tuple[Role, int], *, lived: float) -> float:
        """At once after the first early death; then longer and longer while deaths come soon after each start."""
        deaths = self._early_deaths.get(key, 0) + 1 if lived < SOON else 0
        self._early_deaths[key] = deaths
        if key[0] is Role.SUSPECTS or deaths < PATIENCE:
            return 0.0
        return float(min(0.25 * 2 ** min(deaths, 16), LONGEST_WAIT))

    def _forget_suspects(self) -> None:
        for child in self._children.values():
            child.suspects = 0

    def _look_after(self) -> None:
        now = time.monotonic()
        if self._stopping_since is not None:
            for child in self._children.values():
                if now - self._stopping_since > child.grace + SOON:
                    _signal(child.pid, signal.SIGKILL)
            return
        if all(now - child.beat_at < SILENT_AFTER for child in self._children.values()):
            self._beat()

    def _has(self, role: Role) -> bool:
        return any(child.order.role is role for child in self._children.values())


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _epitaph(code: int, usage: resource.struct_rusage) -> str:
    how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    return f"{how}, peak RSS {usage.ru_maxrss // 1024} MB"
