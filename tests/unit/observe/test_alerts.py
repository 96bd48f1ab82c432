"""Which incidents are told, to whom, and when."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from redrive.core.alert import Alert, Rule
from redrive.core.alert_rules import AlertRules
from redrive.core.audit import Act
from redrive.core.errors import NotifierError, StoreUnavailable
from redrive.core.event import AlertsTold, Event, LettersCollected, NotifierFailed
from redrive.core.letter import DeadLetter
from redrive.core.stored import IncidentChange, IncidentRow, Page
from redrive.observe import alert_watch
from redrive.observe.alerts import EVERY, GATHER, LEASE, Alerts
from redrive.observe.bus import Bus
from redrive.observe.pages import Pages
from redrive.stores.memory import MemoryStore
from redrive.testing import ManualClock
from tests.unit.core.letters import a_letter

MINUTE = timedelta(minutes=1)


class Told:
    """A notifier that keeps what it is told; away while `is_away`."""

    name = "told"

    def __init__(self, repeat_every: timedelta | None = None, *, place: str = "", at_once: int = 100) -> None:
        self.repeat_every = repeat_every
        self.place = place or f"told {id(self)}"
        self.at_once = at_once
        self.is_away = False
        self.calls: list[Sequence[Alert]] = []

    async def tell(self, alerts: Sequence[Alert]) -> None:
        if self.is_away:
            raise NotifierError("nobody is there")
        self.calls.append(alerts)

    async def aclose(self) -> None:
        pass

    def heard(self) -> list[tuple[str, str]]:
        """What came since: each alert's incident, and whether it fires."""
        calls, self.calls = self.calls, []
        named = ((one.incident_id or one.key, one.ended_at) for call in calls for one in call)
        return [(name, "fires" if ended_at is None else "ended") for name, ended_at in named]


class ForgetfulStore(MemoryStore):
    is_away = False

    async def incidents(
        self,
        *,
        state: str | None = "open",
        limit: int = 50,
        after: str | None = None,
        since: datetime | None = None,
    ) -> Page[IncidentRow]:
        if self.is_away:
            raise StoreUnavailable("away")
        return await super().incidents(state=state, limit=limit, after=after, since=since)


class Bench:
    def __init__(self, *notifiers: Told, rules: AlertRules = AlertRules()) -> None:  # noqa: B008 - a frozen value
        self.clock = ManualClock()
        self.events: list[Event] = []
        self.store = ForgetfulStore(clock=self.clock)
        self.bus = Bus(self.events.append)
        self.rules = rules
        self.alerts = self.another(*notifiers)

    def another(self, *notifiers: Told) -> Alerts:
        """Another service over the same store, or the same one after a restart."""
        pages = Pages("https://desk.example")
        return Alerts(self.store, notifiers, clock=self.clock, sink=self.bus, rules=self.rules, pages=pages)

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
    monkeypatch.setattr(alert_watch, "MOST", 2)
    monkeypatch.setattr(alert_watch, "_PAGE", 1)
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


async def _asleep(clock: ManualClock) -> None:
    for _ in range(20):
        await asyncio.sleep(0)
    assert clock.next_wake_at() is not None


async def _until(told: Told, calls: int) -> None:
    async with asyncio.timeout(30):
        while len(told.calls) < calls:  # noqa: ASYNC110 - another task brings it about
            await asyncio.sleep(0)


def test_without_a_public_url_there_is_no_link() -> None:
    assert (Pages(None).incident("f"), Pages("").queue("q")) == ("", "")


# ------------------------------------------------------------------------------------------ what is remembered


async def test_a_restart_tells_nothing_twice_and_ends_what_was_told_before() -> None:
    told = Told(place="chat")
    bench = Bench(told)
    await bench.die("1", "f1")
    await bench.die("2", "\ud800\x00")
    await bench.alerts.look()
    assert len(told.heard()) == 2
    began_at = bench.clock.now()
    bench.clock.advance(LEASE)

    restarted = bench.another(told)
    await restarted.look()
    assert told.heard() == []
    await bench.discard("1", "2")
    await restarted.look()

    assert [(one.began_at, one.ended_at) for one in told.calls[0]] == [(began_at, bench.clock.now())] * 2


async def test_of_two_services_one_tells_and_the_other_goes_on_when_it_is_gone() -> None:
    told = Told(place="chat")
    bench = Bench(told)
    other = bench.another(told)
    await bench.die("1", "f1")
    await asyncio.gather(bench.alerts.look(), other.look())
    assert told.heard() == [("f1", "fires")]
    await bench.die("2", "f2")
    await other.look()
    assert told.heard() == []
    bench.clock.advance(LEASE)

    await other.look()

    assert told.heard() == [("f2", "fires")]
    await bench.alerts.look()
    assert told.heard() == []


async def test_a_service_that_stops_lets_another_one_tell_at_once() -> None:
    told = Told(place="chat")
    bench = Bench(told)
    other = bench.another(told)
    running = asyncio.create_task(bench.alerts.run())
    await _asleep(bench.clock)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await bench.die("1")

    await other.look()

    assert told.heard() == [("f", "fires")]


async def test_a_service_that_is_stopped_while_it_tells_remembers_what_it_told() -> None:
    class Slow(Told):
        """One that takes its time."""

        def __init__(self) -> None:
            super().__init__(place="chat")
            self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

        async def tell(self, alerts: Sequence[Alert]) -> None:
            self.asked.set()
            await self.may_answer.wait()
            await super().tell(alerts)

    slow = Slow()
    bench = Bench(slow)
    await bench.die("1")
    running = asyncio.create_task(bench.alerts.run())
    await slow.asked.wait()
    running.cancel()
    slow.may_answer.set()
    await asyncio.gather(running, return_exceptions=True)

    await bench.another(slow).look()

    assert slow.heard() == [("f", "fires")]


async def test_a_memo_that_cannot_be_read_is_begun_anew() -> None:
    told = Told()
    bench = Bench(told)
    for body in (b"no json", b'{"told": 1}', b"[]"):
        await bench.store.take_memo("alerts", owner="x", now=bench.clock.now(), until=bench.clock.now())
        await bench.store.write_memo("alerts", body, owner="x")
        await bench.alerts.look()
    await bench.die("1")

    await bench.alerts.look()

    assert told.heard() == [("f", "fires")]


async def test_somebody_who_is_new_hears_of_everything_and_the_others_of_nothing() -> None:
    known, new = Told(place="known"), Told(place="new")
    bench = Bench(known)
    await bench.die("1")
    await bench.alerts.look()
    known.heard()
    bench.clock.advance(LEASE)

    await bench.another(known, new).look()

    assert (known.heard(), new.heard()) == ([], [("f", "fires")])


async def test_what_began_and_ended_while_a_notifier_was_away_is_not_told_to_it() -> None:
    told = Told()
    bench = Bench(told)
    told.is_away = True
    await bench.die("1")
    await bench.alerts.look()
    await bench.discard("1")
    told.is_away = False
    bench.clock.advance(EVERY)

    await bench.alerts.look()

    assert told.heard() == []


async def test_what_one_that_fails_half_way_has_taken_is_not_told_again() -> None:
    class Tired(Told):
        """One that takes the first call, and no other before it has rested."""

        async def tell(self, alerts: Sequence[Alert]) -> None:
            await super().tell(alerts)
            self.is_away = True

    tired = Tired(at_once=1)
    bench = Bench(tired)
    await bench.die("1", "f1")
    await bench.die("2", "f2")
    await bench.alerts.look()
    first = tired.heard()
    tired.is_away = False
    bench.clock.advance(EVERY)

    await bench.alerts.look()

    assert sorted(first + tired.heard()) == [("f1", "fires"), ("f2", "fires")]


async def test_one_that_is_away_is_left_alone_longer_and_longer_and_as_long_as_it_asks() -> None:
    class Busy(Told):
        """One that counts how often it was asked."""

        asked = 0
        retry_after: str | None = None

        async def tell(self, alerts: Sequence[Alert]) -> None:
            self.asked += 1
            raise NotifierError("busy", retry_after=self.retry_after)

    busy = Busy()
    bench = Bench(busy)
    await bench.die("1")
    for _ in range(600):
        await bench.alerts.look()
        bench.clock.advance(timedelta(seconds=1))
    in_ten_minutes = busy.asked
    busy.retry_after = "1800"
    bench.clock.advance(MINUTE)
    await bench.alerts.look()
    asked = busy.asked
    for _ in range(29):
        bench.clock.advance(MINUTE)
        await bench.alerts.look()

    assert 600 / 60 <= in_ten_minutes <= 600 / 30 + 4  # half a minute to a minute apart, in the end
    assert busy.asked == asked


async def test_a_relapse_between_two_looks_is_told_too() -> None:
    told = Told()
    bench = Bench(told)
    await bench.die("1")
    await bench.alerts.look()
    await bench.discard("1")
    bench.clock.advance(MINUTE)
    await bench.die("2")

    await bench.alerts.look()

    assert [(one.rule, one.began_at) for call in told.calls for one in call] == [
        (Rule.NEW_INCIDENT, bench.clock.now() - MINUTE),
        (Rule.RELAPSE, bench.clock.now()),
    ]


@pytest.mark.parametrize(
    ("rules", "new", "again"),
    [
        (AlertRules(new_incident=False), [], [("f", "fires")]),
        (AlertRules(relapse=False), [("f", "fires")], []),
    ],
)
async def test_new_incidents_and_relapses_can_be_left_out(
    rules: AlertRules, new: list[tuple[str, str]], again: list[tuple[str, str]]
) -> None:
    told = Told()
    bench = Bench(told, rules=rules)
    await bench.die("1")
    await bench.alerts.look()
    first = told.heard()
    await bench.discard("1")
    await bench.alerts.look()
    told.heard()
    await bench.die("2")

    await bench.alerts.look()

    assert (first, told.heard()) == (new, again)


async def test_a_rule_that_is_turned_off_ends_what_it_began() -> None:
    told = Told(place="chat")
    bench = Bench(told)
    await bench.die("1")
    await bench.alerts.look()
    told.heard()
    bench.clock.advance(LEASE)
    bench.rules = AlertRules(new_incident=False)

    await bench.another(told).look()

    assert told.heard() == [("f", "ended")]


async def test_a_mute_ends_when_its_time_is_up_and_the_audit_knows() -> None:
    told = Told()
    bench = Bench(told)
    for name in ("1", "2", "3"):
        await bench.die(name, f"f{name}")
    until = bench.clock.now() + MINUTE
    for name, end in (("f1", until), ("f2", until), ("f3", None)):
        change = IncidentChange(state="muted", muted_until=end)
        await bench.store.change_incident(name, change, act=bench.act())
    await bench.discard("2")
    await bench.alerts.look()
    assert told.heard() == []
    bench.clock.advance(MINUTE)

    await bench.alerts.look()

    assert told.heard() == [("f1", "fires")]
    assert [(await bench.store.incident(name)).state for name in ("f1", "f2", "f3")] == ["open", "resolved", "muted"]
    records = (await bench.store.records(limit=2)).rows
    assert [(one.verb, one.who) for one in records] == [("incidents.unmute", "alerts")] * 2


async def test_a_mute_ends_where_nobody_is_told_too() -> None:
    bench = Bench()
    await bench.die("1")
    change = IncidentChange(state="muted", muted_until=bench.clock.now())
    await bench.store.change_incident("f", change, act=bench.act())

    await bench.alerts.look()

    assert (await bench.store.incident("f")).state == "open"
