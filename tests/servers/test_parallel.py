"""What holds when pytest-xdist deals the tests among several processes."""

import os
import subprocess
import sys
from pathlib import Path

from tests.servers import ports

ROOT = Path(__file__).parents[2]

USES_A_SERVER = """
import pytest
from tests.servers import roll
from tests.servers.install import Unavailable

@pytest.mark.parametrize("name", ["first", "second", "third"])
def test_server(name):
    roll.used(name, "1.0")

def test_absent():
    raise Unavailable("rare-server", "is not installed")
"""


def test_processes_of_one_run_share_no_port() -> None:
    workers = [{"PYTEST_XDIST_WORKER": f"gw{number}", "PYTEST_XDIST_WORKER_COUNT": "3"} for number in range(3)]
    shares = [{*ports.share(worker)} for worker in workers]

    assert set.union(*shares) == {*ports.PORTS}
    assert sum(map(len, shares)) == len(ports.PORTS)
    assert ports.share({}) == ports.PORTS


def test_the_servers_of_all_processes_are_in_the_last_lines_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.servers.plugin"]\n', "utf-8")
    (tmp_path / "test_servers.py").write_text(USES_A_SERVER, "utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "REDRIVE", "COV"))}
    command = (sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "test_servers.py")
    ended = subprocess.run(
        command, cwd=tmp_path, env={**env, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    last = ended.stdout.partition(" servers ")[2].splitlines()[1:5]
    assert last == [
        "used    first 1.0",
        "used    second 1.0",
        "used    third 1.0",
        "absent  rare-server is not installed",
    ]
