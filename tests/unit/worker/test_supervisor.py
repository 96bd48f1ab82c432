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
