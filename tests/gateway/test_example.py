import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "gateway.py"


def test_the_example_gets_its_answers_at_the_second_attempt() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False, timeout=120)

    assert done.stdout.splitlines() == [
        "You said: hello from planner (attempts: 2)",
        "You said: hello from writer (attempts: 2)",
    ], done.stderr
