"""Which incidents are told, to whom, and when."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from redrive.core.alert import Alert
from redrive.core.audit import Act
from redrive.core.errors import NotifierError, StoreUnavailable
from redrive.core.event import AlertsTold, Event, LettersCollected, NotifierFailed
from redrive.core.letter import DeadLetter
from redrive.core.ports.store import IncidentChange, IncidentRow, Page
from redrive.observe import alerts as module
from redrive.observe.alerts import EVERY, GATHER, Alerts, page_under
from redrive.observe.bus import Bus
from redrive.stores.memory import MemoryStore
from redrive.testing import ManualClock
from tests.unit.core.letters import a_letter

MINUTE = timedelta(minutes=1)


class Told:
    """A notifier that keeps what it is told; away while `is_away`."""

    name = "told"

    def __init__(self, repeat_every: timedelta | None = None) -> None:
        self.repeat_every = repeat_every
        self.is_away = False
        self.calls: list[Sequence[Alert]] = []
        self.closed = 0

    async def tell(self, alerts: Sequence[Alert]) -> None:
        if self.is_away:
            raise NotifierError("nobody is there")
        self.calls.append(alerts)

    async def aclose(self) -> None:
        self.closed += 1

    def heard(self) -> list[tuple[str, str]]:
        """What came since: each alert's incident, and whether it fires."""
        calls, self.calls = self.calls, []
        return [(one.incident_id, "fires" if one.ended_at is None else "ended") for call in calls for one in call]


class ForgetfulStore(MemoryStore):
    is_away = False

    async def incidents(
        self, *, state: str | None = "open", limit: int = 50, after: str | None = None
    ) -> Page[IncidentRow]:
        if self.is_away:
            raise StoreUnavailable("away")
        return await super().incidents(state=state, limit=limit, after=after)


class Bench:
    def __init__(self, *notifiers: Told) -> None:
        self.clock = ManualClock()
        self.events: list[Event] = []
        self.store = ForgetfulStore(clock=self.clock)
        self.bus = Bus(self.events.append)
        self.alerts = Alerts(
            self.store, notifiers, clock=self.clock, sink=self.bus, page=page_under("https://desk.example")
        )

    async def die(self, letter_id: str, incident: str = "f", *, queue: str = "orders", generation: int = 0) -> None:
        await self.store.collect([self.letter(letter_id, incident, queue=queue, generation=generation)])

    def letter(self, letter_id: str, incident: str, *, queue: str, generation: int) -> DeadLetter:
        return a_letter(
            letter_id=letter_id, fingerprint=incident, queue=queue, generation=generation, failed_at=self.clock.now()
        )

    async def discard(self, *letter_ids: str) -> None:
        versions = {one: (await self.store.get(one)).life.version for one in letter_ids}
        assert set(await self.store.discard(versions, act=self.act())) == set(letter_ids)

    def act(self) -> Act:
        return Act(at=self.clock.now(), who="ann", verb="test")


async def test_an_incident_that_opens_is_told_once_with_what_it_is_and_where_to_look() -> None:
    told = Told()
    bench = Bench(told)
    await bench.die("1", "f1")
    await bench.die("2", "f1")

    await bench.alerts.look()
    await bench.alerts.look()

    ((alert,),) = told.calls
    assert alert == Alert(
        incident_id="f1",
        error_type="ValueError",
        queues=("orders",),
        open=2,
        total=2,
        began_at=bench.clock.now(),
        last_at=bench.clock.now(),
        link="https://desk.example/incidents/f1",
    )


async def test_it_ends_when_its_last_open_letter_is_discarded_and_not_before() -> None:
    told = Told()
    bench = Bench(told)
    await bench.die("1")
    await bench.die("2")
    await bench.alerts.look()
    await bench.discard("1")
    await bench.alerts.look()
    assert told.heard() == [("f", "fires")]

    await bench.discard("2")
    await bench.alerts.look()
    await bench.alerts.look()

    assert told.heard() == [("f", "ended")]


async def test_a_relapse_is_told_as_a_new_beginning() -> None:
    told = Told()
    bench = Bench(told)
    await bench.die("1")
    await bench.alerts.look()
    await bench.discard("1")
    await bench.alerts.look()
    told.heard()
    bench.clock.advance(MINUTE)
    await bench.die("1", generation=1)

    await bench.alerts.look()

    assert [one.began_at for call in told.calls for one in call] == [bench.clock.now()]


async def test_what_goes_on_is_repeated_to_those_who_ask_for_it() -> None:
    once, often = Told(), Told(repeat_every=MINUTE)
    bench = Bench(once, often)
    await bench.die("1")

    for _ in range(5):
        await bench.alerts.look()
        bench.clock.advance(MINUTE / 2)

    assert once.heard() == [("f", "fires")]
    assert often.heard() == [("f", "fires")] * 3


@pytest.mark.parametrize("state", ["muted", "resolved"])
async def test_what_somebody_mutes_or_resolves_ends_and_begins_again_when_it_is_reopened(state: str) -> None:
    told = Told()
    bench = Bench(told)
    await bench.die("1")
    await bench.alerts.look()
    await bench.store.change_incident("f", IncidentChange(state=state), act=bench.act())
    await bench.alerts.look()
    assert told.heard() == [("f", "fires"), ("f", "ended")]

    await bench.store.change_incident("f", IncidentChange(state="open"), act=bench.act())
    await bench.alerts.look()

    assert told.heard() == [("f", "fires")]


async def test_one_that_spreads_to_another_queue_ends_under_its_old_name_and_goes_on_under_the_new() -> None:
    told = Told()
    bench = Bench(told)
    await bench.die("1", queue="orders")
    await bench.alerts.look()
    await bench.die("2", queue="payments")

    await bench.alerts.look()

    _, (old, new) = told.calls
    assert (old.queue, old.ended_at) == ("orders", bench.clock.now())
    assert (new.queue, new.ended_at, new.queues) == ("several", None, ("orders", "payments"))


async def test_a_notifier_that_is_away_costs_an_event_and_hears_everything_later() -> None:
    away, other = Told(), Told()
    bench = Bench(away, other)
    away.is_away = True
    await bench.die("1", "f1")
    await bench.alerts.look()
    await bench.alerts.look()  # it is left alone for a while
    assert other.heard() == [("f1", "fires")]
    assert [event for event in bench.events if isinstance(event, NotifierFailed)] == [
        NotifierFailed(at=bench.clock.now(), queue="", notifier="told", alerts=1, why="NotifierError: nobody is there")
    ]
    await bench.die("2", "f2")
    away.is_away = False
    bench.clock.advance(EVERY)

    await bench.alerts.look()

    assert sorted(away.heard()) == [("f1", "fires"), ("f2", "fires")]
    assert bench.events[-1] in (
        AlertsTold(at=bench.clock.now(), queue="", notifier="told", firing=2),
        AlertsTold(at=bench.clock.now(), queue="", notifier="told", firing=1),
    )


async def test_an_end_that_could_not_be_told_is_told_later() -> None:
    told = Told()
    bench = Bench(told)
    await bench.die("1")
    await bench.alerts.look()
    told.heard()
    await bench.discard("1")
    told.is_away = True
    await bench.alerts.look()
    told.is_away = False
    bench.clock.advance(EVERY)

    await bench.alerts.look()

    assert told.heard() == [("f", "ended")]


async def test_a_store_that_is_away_ends_nothing() -> None:
    told = Told()
    bench = Bench(told)
    await bench.die("1")
    await bench.alerts.look()
    bench.store.is_away = True
    bench.clock.advance(EVERY)
    await bench.alerts.look()
    bench.store.is_away = False
    bench.clock.advance(EVERY)

    await bench.alerts.look()

    assert told.heard() == [("f", "fires")]
    assert [type(event) for event in bench.events] == [AlertsTold, NotifierFailed]


async def test_of_too_many_incidents_the_latest_are_told_and_none_is_said_to_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    monkeypatch.setattr(module, "_PAGE", 1)
    told = Told()
    bench = Bench(told)
    for name in ("f1", "f2"):
        await bench.die(name, name)
        bench.clock.advance(MINUTE)
    await bench.alerts.look()
    assert sorted(told.heard()) == [("f1", "fires"), ("f2", "fires")]
    await bench.die("f3", "f3")

    await bench.alerts.look()

    assert told.heard() == [("f3", "fires")]


async def test_it_looks_again_after_a_while_and_soon_after_news() -> None:
    told = Told()
    bench = Bench(told)
    running = asyncio.create_task(bench.alerts.run())
    try:
        await _asleep(bench.clock)
        await bench.die("1", "f1")
        bench.clock.advance(EVERY)
        await _until(told, 1)
        assert told.heard() == [("f1", "fires")]

        await bench.die("2", "f2")
        bench.alerts.hear(LettersCollected(at=bench.clock.now(), queue="orders", new=1, incidents=1))
        await _asleep(bench.clock)
        bench.clock.advance(GATHER)
        await _until(told, 1)
        assert told.heard() == [("f2", "fires")]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await bench.alerts.aclose()
    assert told.closed == 1


async def _asleep(clock: ManualClock) -> None:
    for _ in range(20):
        await asyncio.sleep(0)
    assert clock.next_wake_at() is not None


async def _until(told: Told, calls: int) -> None:
    async with asyncio.timeout(30):
        while len(told.calls) < calls:  # noqa: ASYNC110 - another task brings it about
            await asyncio.sleep(0)


def test_without_a_public_url_there_is_no_link() -> None:
    assert page_under(None)("f") == ""
