import os
import subprocess
import sys
from pathlib import Path

import pytest

from redrive.cli import main
from tests.unit.cli.conftest import Shop


def test_help_lists_every_command(shop: Shop) -> None:
    said = shop.run("--help")

    assert said.status == 0
    for name in (
        *("demo", "worker", "publish", "queues", "dlq", "doctor", "completion"),
        *("collect", "letters", "incidents", "redrives", "audit", "tokens"),
    ):
        assert f" {name} " in said.out


def test_a_slip_of_the_pen_is_one_line_with_a_suggestion(shop: Shop) -> None:
    said = shop.run("quues")

    assert (said.status, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert 'Did you mean "queues"' in said.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands_of_commands(shop: Shop, shell: str) -> None:
    said = shop.run("completion", shell)

    assert said.status == 0
    for word in ("queues", "pause", "peek", "--liveness-file"):
        assert word.removeprefix("--") in said.out


def test_every_mistake_of_the_settings_is_told_on_its_line(shop: Shop) -> None:
    Path("redrive.toml").write_text('brokr = "x"\nlog.level = "loud"\n', "utf-8")

    said = shop.run("queues")

    assert said.status == 2
    assert said.err.splitlines() == [
        "redrive: redrive.toml: brokr: unknown key; did you mean broker?",
        "redrive: redrive.toml: log.level: expected one of debug, info, warning, error, got 'loud'",
    ]


def test_an_unknown_broker_is_told_with_an_example_and_without_its_password(shop: Shop) -> None:
    said = shop.run("queues", "--broker", "ftp://shop:s3cret@host")

    assert said.status == 2
    assert "sqlite:///redrive.db" in said.err
    assert "s3cret" not in said.err


@pytest.mark.parametrize(
    "tokens", [("queues",), ("dlq", "peek", "--queue", "orders"), ("doctor",), ("queues", "pause", "orders")]
)
def test_a_look_at_an_absent_file_does_not_make_one(shop: Shop, tokens: tuple[str, ...]) -> None:
    said = shop.run(*tokens)

    assert said.status == 4
    assert said.err == "redrive: no queue file at redrive.db; publishing or a worker begins one\n"
    assert not shop.file.exists()


def test_main_exits_with_the_status_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["redrive", "no-such-command"])

    with pytest.raises(SystemExit) as exit_info:
        main()

    assert exit_info.value.code == 2


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "redrive.cli", "completion", "bash"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)

    assert (ended.returncode, ended.stderr) == (0, b"")
