"""RabbitMQ under the crash harness: the short form. It has a command of its own, `make crash-rabbitmq`.

With workers struck only, it comes to its end: what made it stand still has tests of its own in `tests/rabbitmq`. Once
the server was killed and stopped, letters get no confirmation, and why is not known: until it is, this is no gate.
"""

import os
from pathlib import Path

import pytest

from tests.crash.campaign import everywhere, run
from tests.crash.rabbitmq import rabbitmq
from tests.crash.report import table
from tests.crash.scenario import Scenario

pytestmark = pytest.mark.skipif("REDRIVE_CRASH_RABBITMQ" not in os.environ, reason="make crash-rabbitmq runs it")

SHORT = Scenario(messages=5200, kills=12, lease=4.0, concurrency=16, prefetch=16, processes=4)


async def test_every_message_is_accounted_for_whoever_is_killed_and_whatever_is_cut(tmp_path: Path) -> None:
    with rabbitmq(tmp_path / "rabbitmq") as adapter:
        result = await run(everywhere(SHORT, adapter), adapter=adapter, folder=tmp_path)
    print(table([result]))

    assert result.verdict.red == [], f"{table([result])}\n{result.stderr}"
    assert result.verdict.shown["acknowledged"] >= 5000
    assert result.verdict.shown["fenced"] > 0
