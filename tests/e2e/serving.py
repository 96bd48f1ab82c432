"""The service as a process of its own, and what is asked of it over HTTP."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.servers.redis import ask

APP = """
import os
import redrive

app = redrive.App(os.environ["SHOP_BROKER"], name="shop", grace=5)


@app.consumer("orders", retry=None, breaker=None)
async def charge(body: bytes) -> None:
    if not os.path.exists("mended"):
        raise ValueError("no rate")
"""


def until(true: Callable[[], bool], *, what: str, within: float = 60) -> None:
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, f"stuck: {what}"
        time.sleep(0.05)


class Shop:
    """A folder in which programs of ours run."""

    program: Sequence[str] = (sys.executable, "-m", "redrive.cli")

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        clean = {name: value for name, value in os.environ.items() if not name.startswith("REDRIVE_")}
        self.env = {**clean, **env}
        (folder / "first.py").write_text(APP, "utf-8")

    def run(self, *words: str, status: int = 0) -> str:
        command = (*self.program, *words)
        ended = subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False, timeout=120
        )
        assert ended.returncode == status, f"{words}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
        return ended.stdout if status == 0 else ended.stderr

    def facts(self, *words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(*words, "--json").splitlines()]

    @contextmanager
    def process(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs until it is told to end, which it does with status 0; or until it is killed."""
        command = (*self.program, *words)
        process = subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, text=True)
        try:
            yield process
            if process.poll() != -signal.SIGKILL:
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    @contextmanager
    def service(self, *words: str) -> Iterator["Api"]:
        with self.process("serve", "--port", "0", "--json", *words) as process:
            assert process.stdout is not None
            with httpx2.Client(base_url=json.loads(process.stdout.readline())["url"], timeout=30) as client:
                yield Api(client, process)


class Api:
    """The service, asked."""

    def __init__(self, client: httpx2.Client, process: subprocess.Popen[str]) -> None:
        self.client = client
        self._process = process

    def kill(self) -> None:
        """Let it die at once."""
        self._process.kill()
        self._process.wait()

    def get(self, path: str, **query: str) -> Any:
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def readiness(self) -> dict[str, str]:
        """By dependency, `ok` or what is wrong; the status of the answer agrees with it."""
        answer = self.client.get("/readyz")
        found: dict[str, str] = answer.json()["dependencies"]
        assert answer.status_code == (200 if set(found.values()) == {"ok"} else 503)
        return found

    def is_ready(self) -> bool:
        """Whether nothing is wrong and the door is open, which it is not before the store has said who may enter."""
        answer = self.client.get("/api/v1/dlq/messages", params={"limit": "1"})
        return set(self.readiness().values()) == {"ok"} and answer.status_code == 200

    def letters(self, **query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("/api/v1/dlq/messages", **query)
        return found

    def payloads(self, **query: str) -> list[str]:
        return sorted(letter["payload"] for letter in self.letters(**query))


def die(url: str, payload: str, *, dlq: str = "orders:dlq") -> None:
    """Put a letter into a DLQ by hand, as the seed's consumers do."""
    ask(
        url,
        "XADD",
        dlq,
        "*",
        "payload",
        payload,
        "error_type",
        "TimeoutError",
        "error_message",
        "slow",
        "retry_count",
        3,
    )
