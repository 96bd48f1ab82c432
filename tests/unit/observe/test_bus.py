import logging
from datetime import UTC, datetime

import pytest

from redrive.core.event import Event
from redrive.observe.bus import Bus

EVENT = Event(at=datetime(2026, 1, 2, tzinfo=UTC), queue="orders", group="shop")


def broken(event: Event) -> None:
    raise ValueError(event.queue)


def test_every_subscriber_hears_every_event_in_order() -> None:
    heard: list[str] = []
    bus = Bus(lambda _: heard.append("first"))
    bus.subscribe(lambda _: heard.append("second"))

    bus.emit(EVENT)

    assert heard == ["first", "second"]


def test_a_failing_subscriber_is_logged_once_and_the_others_still_hear(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Event] = []
    bus = Bus(broken, heard.append)

    with caplog.at_level(logging.ERROR):
        bus.emit(EVENT)
        bus.emit(EVENT)

    assert heard == [EVENT, EVENT]
    assert len(caplog.records) == 1


def test_subscribing_twice_is_subscribing_once() -> None:
    heard: list[Event] = []
    bus = Bus()
    bus.subscribe(heard.append)
    stop = bus.subscribe(heard.append)

    bus.emit(EVENT)
    stop()
    stop()
    bus.emit(EVENT)

    assert heard == [EVENT]


def test_a_subscriber_may_unsubscribe_itself_while_it_is_told() -> None:
    heard: list[str] = []
    bus = Bus()

    def once(_: Event) -> None:
        heard.append("once")
        bus.unsubscribe(once)

    bus.subscribe(once)
    bus.subscribe(lambda _: heard.append("always"))

    bus.emit(EVENT)
    bus.emit(EVENT)

    assert heard == ["once", "always", "always"]
