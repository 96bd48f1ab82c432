"""The supervisor over tiny child programs: real processes, no app."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from redrive.core.event import Event, WorkerDied
from redrive.worker.supervisor import Order, Supervisor

DIES_BEFORE_ITS_CHILD = """
import os, signal, sys, time
os.write(int(sys.argv[1]), b'{"owner": "shop-1"}\\n')
if os.fork() == 0:
    time.sleep(5)
    open("outlived", "w").close()
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""
LIVES_WITHOUT_A_PIPE = """
import os, sys, time
os.close(int(sys.argv[1]))
open("closed", "w").close()
time.sleep(5)
open("outlived", "w").close()
"""


class Heard:
    """Keeps what is emitted, and asks the supervisor to stop."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)
        os.kill(os.getpid(), signal.SIGTERM)


def running(program: str) -> Callable[[Order], list[str]]:
    return lambda order: [sys.executable, "-c", program, str(order.pipe)]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_death_is_seen_while_a_forked_process_still_holds_the_pipe() -> None:
    heard = Heard()

    status = Supervisor(running(DIES_BEFORE_ITS_CHILD), processes=1, sink=heard).run()

    (death,) = heard.events
    assert isinstance(death, WorkerDied)
    assert (death.owner, death.text.partition(",")[0]) == ("shop-1", "killed by SIGKILL")
    assert status == 0
    assert not Path("outlived").exists()


def test_a_child_that_closes_its_pipe_and_lives_does_not_hold_up_the_supervisor() -> None:
    def stop_once_closed() -> None:
        if Path("closed").exists():
            os.kill(os.getpid(), signal.SIGTERM)

    heard = Heard()

    Supervisor(running(LIVES_WITHOUT_A_PIPE), processes=1, sink=heard, beat=stop_once_closed).run()

    assert heard.events == []
    assert not Path("outlived").exists()


ENDS_OR_DIES = """
import os, signal, sys, time
role = sys.argv[2]
os.write(int(sys.argv[1]), b'{"owner": "%s", "suspects": 1}\\n' % role.encode())
if role == "worker":
    if not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
"""


def test_the_end_of_every_child_is_told_before_another_takes_its_place() -> None:
    told: list[str] = []

    def start(order: Order) -> list[str]:
        told.append(f"{order.role} {order.index} begins")
        return [sys.executable, "-c", ENDS_OR_DIES, str(order.pipe), order.role]

    def gone(order: Order) -> None:
        told.append(f"{order.role} {order.index} is gone")
        if {"worker 0 is gone", "suspects 1 is gone"} <= set(told):
            os.kill(os.getpid(), signal.SIGTERM)

    class Deaf:
        def emit(self, event: Event) -> None:
            """Deaths are not what is looked at here."""

    Supervisor(start, processes=1, sink=Deaf(), gone=gone).run()

    workers = [line for line in told if line.startswith("worker")]
    assert workers == ["worker 0 begins", "worker 0 is gone"] * (len(workers) // 2)
    assert "suspects 1 is gone" in told
