import json
import os
import pty
import re
import select
import signal
import subprocess
import sys

DEMO = (sys.executable, "-m", "redrive.cli", "demo")
PLACES = ("done", "waiting", "scheduled", "in flight", "dead", "discarded")
SUM = re.compile(r"published (\d+) = " + r" \+ ".join(rf"{place} (\d+)" for place in PLACES))


def adds_up(text: str) -> bool:
    found = SUM.search(text)
    assert found, text
    published, *places = map(int, found.groups())
    return published == sum(places) > 0


def test_the_demo_ends_by_itself_with_a_sum_that_adds_up() -> None:
    ended = subprocess.run([*DEMO, "--seconds", "4"], capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == 0, ended.stderr
    assert adds_up(ended.stdout)
    assert "✓ every message is accounted for" in ended.stdout
    assert "\x1b" not in ended.stdout


def test_the_demo_says_its_end_as_json() -> None:
    flags = ("--seconds", "2", "--rate", "100", "--json")
    ended = subprocess.run([*DEMO, *flags], capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == 0, ended.stderr
    end = json.loads(ended.stdout)
    assert end["adds_up"] is True
    assert end["published"] == sum(end[place.replace(" ", "_")] for place in PLACES) > 0


def test_on_a_terminal_every_fate_and_the_whole_story_are_seen_and_ctrl_c_ends_the_demo_with_its_sum() -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": "160", "LINES": "60", "TERM": "xterm"}
    demo = subprocess.Popen([*DEMO, "--seconds", "300"], stdout=theirs, stderr=theirs, stdin=theirs, env=env)
    os.close(theirs)
    fates = {b"MissingRate", b"InvalidPayload", b"ProviderTimeout", b"WorkerCrash"}
    fates |= {b"it succeeded on version 2", b"stopped after 1: same failure"}
    seen = b""
    try:
        while select.select([ours], [], [], 60)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # the terminal is closed at the other end
                break
            if fates and all(fate in seen for fate in fates):
                fates = set()
                demo.send_signal(signal.SIGINT)
        status = demo.wait(timeout=60)
    finally:
        demo.kill()
        demo.wait()
        os.close(ours)

    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode(errors="replace"))
    assert status == 0, shown[-2000:]
    assert not fates
    assert adds_up(shown)
