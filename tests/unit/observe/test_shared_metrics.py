from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, values

from redrive.core.event import BatchSettled, ConsumerPaused, MessageDropped, WorkerBeat, WorkerDied, WorkerStarted
from redrive.observe.metrics import Metrics
from redrive.observe.series import VALUES
from redrive.observe.shared_metrics import count_in, forget, sums_of

AT = datetime(2026, 1, 2, tzinfo=UTC)
WHERE: dict[str, Any] = {"at": AT, "broker": "redis", "queue": "orders", "group": "shop"}
LABELS = {"broker": "redis", "queue": "orders", "group": "shop"}


@pytest.fixture(autouse=True)
def _counting_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    yield
    values.close_all_multiprocess_files()  # type: ignore[no-untyped-call]


def process_in(folder: Path, slot: str) -> Metrics:
    known = count_in(folder, slot=slot)
    return Metrics(CollectorRegistry(), known=known)


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


def test_what_is_in_flight_adds_up_and_goes_with_its_process(tmp_path: Path) -> None:
    def shown() -> tuple[float | None, float | None]:
        page = sums_of(tmp_path)
        runs = page.get_sample_value("redrive_handler_seconds_count", LABELS)
        return page.get_sample_value("redrive_in_flight", LABELS), runs

    for slot, number in (("0", 3), ("1", 4), ("10", 5)):
        metrics = process_in(tmp_path, slot)
        metrics(WorkerBeat(**WHERE, in_flight=number, suspects=0))
        metrics(BatchSettled(**WHERE, acked=1, runs=[(0.1, number)]))
    seen = [shown()]
    forget(tmp_path, slot="1")
    seen.append(shown())

    assert seen == [(12, 12), (8, 12)]


def test_a_histogram_never_falls_when_a_process_is_started_anew(tmp_path: Path) -> None:
    def runs() -> dict[str, float | None]:
        page = sums_of(tmp_path)
        bounds = ("0.05", "0.1", "+Inf")
        return {le: page.get_sample_value("redrive_handler_seconds_bucket", {**LABELS, "le": le}) for le in bounds}

    process_in(tmp_path, "0")(BatchSettled(**WHERE, runs=[(0.1, 3)]))
    values.close_all_multiprocess_files()  # type: ignore[no-untyped-call]
    process_in(tmp_path, "0")(BatchSettled(**WHERE, runs=[(0.01, 2)]))

    assert runs() == {"0.05": 2, "0.1": 5, "+Inf": 5}


def test_values_made_up_by_one_process_after_another_have_one_limit(tmp_path: Path) -> None:
    for life in range(4):
        metrics = process_in(tmp_path, "0")
        for number in range(VALUES):
            metrics(MessageDropped(**WHERE, message_id="", payload_sha256="", reason="", error_type=f"{life}-{number}"))
        values.close_all_multiprocess_files()  # type: ignore[no-untyped-call]

    (metric,) = [one for one in sums_of(tmp_path).collect() if one.name == "redrive_messages_dropped"]
    assert len(metric.samples) == VALUES + 1
    assert sum(sample.value for sample in metric.samples) == 4 * VALUES


def test_metrics_of_the_users_own_appear_too(tmp_path: Path) -> None:
    count_in(tmp_path, slot="0")
    Counter("shop_charges", "Cards charged.", registry=CollectorRegistry()).inc(2)

    assert sums_of(tmp_path).get_sample_value("shop_charges_total") == 2
