import os
import urllib.request
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from redrive.observe.health import STALE_AFTER, HealthPort, LivenessFile


def status(port: int, path: str = "/healthz") -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def test_a_beat_makes_the_file_young_again(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    liveness = LivenessFile(path)
    os.utime(path, (0, 0))

    liveness.beat()

    assert path.stat().st_mtime > 0


def test_the_file_is_gone_after_an_orderly_end(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    liveness = LivenessFile(path)

    liveness.close()
    liveness.close()

    assert not path.exists()


def test_a_file_that_cannot_be_written_is_told_at_once_but_never_by_a_beat(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with pytest.raises(FileNotFoundError):
        LivenessFile(folder / "alive")

    folder.mkdir()
    liveness = LivenessFile(folder / "alive")
    liveness.close()
    folder.rmdir()

    liveness.beat()


def test_the_port_answers_while_beats_come_and_complains_when_they_stop() -> None:
    now = [0.0]
    health = HealthPort(0, clock=lambda: now[0])
    try:
        fresh = status(health.port)
        now[0] += STALE_AFTER + 1
        stale = status(health.port)
        health.beat()
        again = status(health.port)
        elsewhere = status(health.port, "/")
    finally:
        health.close()

    assert (fresh, stale, again, elsewhere) == (200, 503, 200, 404)
    with pytest.raises(URLError):
        status(health.port)
