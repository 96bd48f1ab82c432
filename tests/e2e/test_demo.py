import contextlib
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import Request, urlopen

DEMO = (sys.executable, "-m", "redrive.cli", "demo")
PLACES = ("done", "waiting", "scheduled", "in flight", "dead", "discarded")
SUM = re.compile(r"published (\d+) = " + r" \+ ".join(rf"{place} (\d+)" for place in PLACES))
ADDRESS = re.compile(r"The console is open at (http://127\.0\.0\.1:\d+)   \(port 8800 is taken\)")

Found = TypeVar("Found")


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


def test_the_console_is_open_all_the_while_and_what_is_done_there_is_in_the_sum(tmp_path: Path) -> None:
    """Without a time the demo goes on until Ctrl-C."""
    with _port_8800_is_taken(), (tmp_path / "said").open("w") as said:
        demo = subprocess.Popen([*DEMO, "--rate", "60"], stdout=said, stderr=subprocess.STDOUT)
        try:
            url = _once(lambda: ADDRESS.search((tmp_path / "said").read_text("utf-8")))[1]
            (incident,) = _once(lambda: _asked(f"{url}/api/v1/incidents?limit=1"))
            page = urlopen(url, timeout=60).read().decode()  # noqa: S310 - on this machine
            letters = _asked(f"{url}/api/v1/letters?limit=2&state=open&fingerprint={incident['incident_id']}")
            seen = [{"letter_id": one["letter_id"], "version": one["version"]} for one in letters]
            _asked(f"{url}/api/v1/letters/discard", {"letters": seen})
            purge = {"older_than": 0, "filter": {"state": ["discarded"]}, "dry_run": False}
            purged = _asked(f"{url}/api/v1/letters/purge", purge)["letters"]
            demo.send_signal(signal.SIGINT)
            status = demo.wait(timeout=120)
        finally:
            demo.kill()
            demo.wait()

    text = (tmp_path / "said").read_text("utf-8")
    assert status == 0, text[-2000:]
    assert incident["error_type"].rpartition(".")[2] in page
    assert "emails" in page
    assert 0 < purged <= len(seen)
    assert f"+ purged {purged}" in text
    assert "✓ every message is accounted for" in text


@contextlib.contextmanager
def _port_8800_is_taken() -> Iterator[None]:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # somebody else has it, which is just as well
            taken.bind(("127.0.0.1", 8800))
            taken.listen()
        yield


def _asked(url: str, body: Any = None) -> Any:
    request = Request(url, None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urlopen(request, timeout=60) as answer:  # noqa: S310 - on this machine
        return json.load(answer)


def _once(found: Callable[[], Found | None]) -> Found:
    """The first thing that is found."""
    until = time.monotonic() + 90
    while time.monotonic() < until:
        if thing := found():
            return thing
        time.sleep(0.1)
    raise AssertionError("nothing was found")
