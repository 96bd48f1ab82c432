import threading
from datetime import UTC, datetime, timedelta

import pytest

from redrive.core.errors import ConfigError
from redrive.core.event import AlertThresholdReached, BatchSettled, Event, LetterWritten, WorkerStarted
from redrive.core.letter import DeadLetter
from redrive.core.reason import Reason
from redrive.worker.alerting import AlertThreshold

START = datetime(2030, 1, 1, tzinfo=UTC)


class Events:
    def __init__(self) -> None:
        self.seen: list[Event] = []

    def emit(self, event: Event) -> None:
        self.seen.append(event)

    @property
    def alerts(self) -> list[AlertThresholdReached]:
        return [event for event in self.seen if isinstance(event, AlertThresholdReached)]


def written(minute: float = 0, *, queue: str = "orders") -> LetterWritten:
    letter = DeadLetter(
        letter_id="1", queue=queue, payload=b"", payload_sha256="", reason=Reason.REJECTED, failed_at=START
    )
    return LetterWritten(at=START + timedelta(minutes=minute), queue=queue, letter=letter)


def test_the_hundredth_letter_within_an_hour_raises_one_alert() -> None:
    events = Events()
    alert = AlertThreshold(events)

    for _ in range(99):
        alert.emit(written())
    assert events.alerts == []

    for minute in range(50):
        alert.emit(written(minute))
    assert events.alerts == [AlertThresholdReached(at=START, queue="orders", letters=100, window=3600.0)]


def test_letters_that_were_settled_together_are_counted_one_by_one() -> None:
    events = Events()
    alert = AlertThreshold(events, threshold=5)
    letter = written().letter

    for minute, letters in enumerate((0, 2, 2, 3, 40)):
        at = START + timedelta(minutes=minute)
        alert.emit(BatchSettled(at=at, queue="orders", acked=1, dead=letters, letters=[letter] * letters))

    assert [event.at for event in events.alerts] == [START + timedelta(minutes=3)]


def test_letters_spread_over_more_than_the_window_raise_nothing() -> None:
    events = Events()
    alert = AlertThreshold(events, threshold=3)

    for minute in range(0, 600, 30):
        alert.emit(written(minute))

    assert events.alerts == []


def test_a_flood_that_goes_on_raises_one_alert_per_window() -> None:
    events = Events()
    alert = AlertThreshold(events, threshold=3)

    for minute in range(150):
        alert.emit(written(minute))

    assert [(event.at - START) / timedelta(minutes=1) for event in events.alerts] == [2, 62, 122]


def test_each_queue_is_counted_by_itself() -> None:
    events = Events()
    alert = AlertThreshold(events, threshold=2)

    for queue in ("orders", "invoices", "orders"):
        alert.emit(written(queue=queue))

    assert [event.queue for event in events.alerts] == ["orders"]


def test_every_event_is_passed_on_and_only_letters_are_counted() -> None:
    events = Events()
    alert = AlertThreshold(events, threshold=1)
    started = WorkerStarted(at=START, queue="orders", owner="w1")

    alert.emit(started)
    alert.emit(written())

    assert events.seen[:2] == [started, written()]
    assert len(events.alerts) == 1


def test_letters_from_many_threads_are_all_counted() -> None:
    events = Events()
    alert = AlertThreshold(events, threshold=400)

    def write_many() -> None:
        for _ in range(100):
            alert.emit(written())

    threads = [threading.Thread(target=write_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(events.alerts) == 1


def test_a_threshold_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="alert_threshold"):
        AlertThreshold(Events(), threshold=0)
