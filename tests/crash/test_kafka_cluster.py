"""Three Kafka brokers under the crash harness, one of them killed at a time. `make crash-kafka` runs it."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.adapter import Adapter
from tests.crash.campaign import everywhere, run
from tests.crash.journal import Reader, Word
from tests.crash.kafka_cluster import on_cluster
from tests.crash.plan import RETURNS
from tests.crash.report import return_table, table
from tests.crash.scenario import Scenario
from tests.crash.way_back import LOOK
from tests.crash.way_back import run as run_way_back
from tests.servers.kafka_cluster import KafkaCluster

pytestmark = pytest.mark.skipif("REDRIVE_CRASH_KAFKA" not in os.environ, reason="make crash-kafka runs it")

SHORT = Scenario(messages=3000, kills=18, lease=2.0, concurrency=16, prefetch=16)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path / "kafka") as cluster:
        yield cluster


async def strike(adapter: Adapter, reader: Reader) -> None:
    """Kill a broker when the collector is at work, and another one when letters are on their way back."""
    while not reader.of(Word.FAULT):  # noqa: ASYNC110 - another process's event
        await asyncio.sleep(LOOK)
    await asyncio.to_thread(adapter.faults["SIGKILL of the coordinator of transactions"])
    while not any(entry.generation for entry in reader.of(Word.START)):  # noqa: ASYNC110 - the same
        await asyncio.sleep(LOOK)
    await asyncio.to_thread(adapter.faults["SIGKILL of the leader of a queue"])


async def test_every_message_is_accounted_for_whichever_broker_is_killed(cluster: KafkaCluster, tmp_path: Path) -> None:
    adapter = on_cluster(cluster)
    result = await run(replace(everywhere(SHORT, adapter), stops=()), adapter=adapter, folder=tmp_path)
    print(table([result]))

    assert result.verdict.red == [], f"{table([result])}\n{result.stderr}"
    assert result.verdict.shown["fenced"] > 0
    assert {name for name in adapter.faults if f"fault: {name}" not in result.verdict.shown} == set()


async def test_every_letter_is_resolved_exactly_once_with_a_broker_killed_on_either_half_of_the_way(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    adapter = on_cluster(cluster, queue=RETURNS)
    (tmp_path / "journal").touch()
    striking = asyncio.create_task(strike(adapter, Reader(tmp_path / "journal")))
    result = await run_way_back(Scenario(messages=150, kills=1), adapter=adapter, folder=tmp_path)
    print(return_table([result]))

    assert striking.done(), "nobody was struck"
    await striking
    assert result.verdict.red == [], f"{return_table([result])}\n{result.stderr}"
    assert result.verdict.shown["resolved"] == 150
