from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, values

from redrive.core.event import BatchSettled, ConsumerPaused, WorkerDied, WorkerStarted
from redrive.observe.metrics import Metrics
from redrive.observe.shared_metrics import count_in, sums_of

AT = datetime(2026, 1, 2, tzinfo=UTC)
WHERE: dict[str, Any] = {"at": AT, "queue": "orders", "group": "shop"}
LABELS = {"queue": "orders", "group": "shop"}


@pytest.fixture(autouse=True)
def _counting_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    yield
    values.close_all_multiprocess_files()  # type: ignore[no-untyped-call]


def process_in(folder: Path, slot: str) -> Metrics:
    count_in(folder, slot=slot)
    return Metrics(CollectorRegistry())


def acked(folder: Path) -> float | None:
    return sums_of(folder).get_sample_value("redrive_settled_total", {**LABELS, "outcome": "acked"})


def test_the_page_shows_the_sum_of_all_processes(tmp_path: Path) -> None:
    process_in(tmp_path, "0")(BatchSettled(**WHERE, acked=3))
    process_in(tmp_path, "1")(BatchSettled(**WHERE, acked=4))
    process_in(tmp_path, "supervisor")(WorkerDied(at=AT, queue="", owner="w", text="exit 1"))

    assert acked(tmp_path) == 7
    assert sums_of(tmp_path).get_sample_value("redrive_worker_deaths_total") == 1


def test_a_counter_never_falls_when_a_process_is_started_anew(tmp_path: Path) -> None:
    process_in(tmp_path, "0")(BatchSettled(**WHERE, acked=3))
    values.close_all_multiprocess_files()  # type: ignore[no-untyped-call]
    process_in(tmp_path, "0")(BatchSettled(**WHERE, acked=2))

    assert acked(tmp_path) == 5
    assert len(list(tmp_path.glob("counter_*.db"))) == 1


def test_a_paused_consumer_shows_through_and_is_forgotten_with_its_process(tmp_path: Path) -> None:
    def paused() -> float | None:
        return sums_of(tmp_path).get_sample_value("redrive_consumer_paused", LABELS)

    process_in(tmp_path, "0")(WorkerStarted(**WHERE, owner="a"))
    process_in(tmp_path, "1")(ConsumerPaused(**WHERE, why="outage"))
    seen = [paused()]
    process_in(tmp_path, "1")(WorkerStarted(**WHERE, owner="b"))
    seen.append(paused())

    assert seen == [1, 0]


def test_metrics_of_the_users_own_appear_too(tmp_path: Path) -> None:
    count_in(tmp_path, slot="0")
    Counter("shop_charges", "Cards charged.", registry=CollectorRegistry()).inc(2)

    assert sums_of(tmp_path).get_sample_value("shop_charges_total") == 2
