"""News of letters and acts of people in any order, on both stores at once, beside a model that knows no order."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.core.errors import LetterNotFound
from redrive.core.letter import DeadLetter
from redrive.core.life import LetterState
from redrive.core.ports.store import Store
from redrive.core.redrive import ItemStatus, Planned, RedriveState
from redrive.testing.conformance.store.bench import AT, a_redrive, an_act
from tests.properties.lives import Kind, News, Story, fingerprint_of
from tests.properties.recount import check_counts, check_deaths, incidents_of
from tests.properties.stores import both_stores

NAMES = ("a", "b")
STEPS_UP = {
    ItemStatus.PLANNED: 0,
    ItemStatus.CLAIMED: 1,
    ItemStatus.SENT: 2,
    ItemStatus.UNCONFIRMED: 3,
    ItemStatus.FAILED: 4,
    ItemStatus.FAILED_OTHERWISE: 5,  # a failure may be reported before the letter says how
    ItemStatus.SUCCEEDED: 6,
    ItemStatus.SKIPPED: 7,
    ItemStatus.UNTOUCHED: 7,
}


@dataclass
class Trip:
    """A redrive of one letter, as the model knows it."""

    name: str
    version: int
    over_cap: bool
    again: bool
    status: ItemStatus = ItemStatus.PLANNED
    generation: int | None = None
    fingerprint: str = ""
    ended: bool = False


class World:
    """Two stores that are told the same, and the model."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self.stores = stores
        self.stories = {name: Story() for name in NAMES}
        self.trips: list[Trip] = []

    async def everywhere(self, call: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
        """The answer of all stores: the same one."""
        first, *others = [await call(store) for store in self.stores]
        assert all(other == first for other in others), f"the stores disagree: {first} and {others}"
        return first

    async def tell(self, batch: Sequence[tuple[str, News]]) -> None:
        letters = [one for name, news in batch for one in news.letters(name)]
        outcomes = [one for name, news in batch for one in news.outcomes(name)]
        await self.everywhere(lambda store: store.collect(letters, outcomes))
        for name, news in batch:
            self.stories[name].heard.add(news)

    async def discard(self, name: str) -> None:
        story = self.stories[name]
        if not story.is_known:
            return
        version = await self.version(name)
        done = await self.everywhere(lambda store: store.discard({name: version}, act=an_act("letters.discard")))
        assert [*done] == [name] * (story.state in (LetterState.OPEN, LetterState.PARKED))
        if done:
            story.discarded.add(story.generation)

    async def plan(self, name: str, *, over_cap: bool, again: bool) -> None:
        if not self.stories[name].is_known:
            return
        trip = Trip(name, await self.version(name), over_cap, again)
        redrive = a_redrive(str(len(self.trips)), over_cap=over_cap, again=again)
        act = an_act("letters.redrive")
        await self.everywhere(lambda store: store.create(redrive, [Planned(name, trip.version)], act=act))
        self.trips.append(trip)

    async def claim(self, number: int) -> None:
        trip = self.trips[number]
        may_go = trip.status is ItemStatus.PLANNED and not trip.ended and await self.may_be_sent(trip)
        claimed = await self.everywhere(lambda store: store.claim(str(number), step=0, limit=10))
        if trip.status is ItemStatus.CLAIMED:
            assert [(one.letter_id, one.generation) for one in claimed] == [(trip.name, trip.generation)]
            return
        assert [one.letter_id for one in claimed] == [trip.name] * may_go
        if may_go:
            story = self.stories[trip.name]
            trip.generation, trip.fingerprint = story.generation + 1, fingerprint_of(story.deaths[-1])
            assert claimed[0].generation == trip.generation
            story.sent.add(trip.generation)

    async def may_be_sent(self, trip: Trip) -> bool:
        allowed = {LetterState.OPEN}
        allowed |= {LetterState.PARKED} if trip.over_cap else set()
        allowed |= {LetterState.REDRIVING} if trip.again else set()
        is_out = any(other.name == trip.name and other.status.out for other in self.trips)
        unchanged = await self.version(trip.name) == trip.version
        return unchanged and self.stories[trip.name].state in allowed and not is_out

    async def succeed(self, number: int) -> None:
        await self.answer(number, Kind.SUCCESS)

    async def die(self, number: int) -> None:
        await self.answer(number, Kind.DEATH)

    async def answer(self, number: int, kind: Kind) -> None:
        """News of the very message that a redrive has sent."""
        trip = self.trips[number]
        if trip.generation is not None:
            await self.tell([(trip.name, News(kind, trip.generation))])

    async def record(self, number: int) -> None:
        name = self.trips[number].name
        await self.everywhere(lambda store: store.sent(str(number), {name: f"m-{number}"}, at=AT))

    async def expire(self, number: int) -> None:
        late = AT + timedelta(hours=1)
        await self.everywhere(lambda store: store.expire(str(number), before=late, quiet=False))

    async def end(self, number: int) -> None:
        act = an_act("redrives.cancel")
        await self.everywhere(lambda store: store.mark(str(number), RedriveState.CANCELLED, why="", act=act))
        self.trips[number].ended = True

    def deaths(self) -> list[DeadLetter]:
        return [one for name, story in self.stories.items() for news in story.heard for one in news.letters(name)]

    async def version(self, name: str) -> int:
        return int(await self.everywhere(lambda store: _version(store, name)))

    async def check(self) -> None:
        """Everything that must hold after every step."""
        for name, story in self.stories.items():
            await self._check_letter(name, story)
        for number, trip in enumerate(self.trips):
            await self._check_trip(number, trip)
        for store in self.stores:
            await check_counts(store)
            await check_deaths(store, self.deaths())
        await self.everywhere(incidents_of)

    async def _check_letter(self, name: str, story: Story) -> None:
        stored = await self.everywhere(lambda store: _get(store, name))
        assert (stored is not None) is story.is_known
        if stored is not None:
            assert (stored.life.state, stored.life.generation) == (story.state, story.generation)
            assert [attempt.generation for attempt in stored.letter.attempts] == story.deaths
            assert stored.letter.generation == story.deaths[-1]

    async def _check_trip(self, number: int, trip: Trip) -> None:
        progress = await self.everywhere(lambda store: store.progress(str(number)))
        ((status, _),) = [(status, number) for status, number in progress.steps[0].items() if number]
        assert STEPS_UP[status] >= STEPS_UP[trip.status], f"{trip.status} went back to {status}"
        assert not (trip.ended and status.out), f"nobody waits for it any more: {status}"
        trip.status = status
        if trip.generation is not None:
            answer = self.stories[trip.name].answer(trip.generation, fingerprint=trip.fingerprint)
            assert answer in (None, status)


async def _get(store: Store, name: str) -> Any:
    try:
        return await store.get(name)
    except LetterNotFound:
        return None


async def _version(store: Store, name: str) -> int:
    return (await store.get(name)).life.version


# ----------------------------------------------------------------------------------------------- stories

Step = Callable[[World], Coroutine[Any, Any, None]]

names = st.sampled_from(NAMES)
kinds = st.sampled_from(Kind)
news = st.builds(
    lambda kind, number: News(kind, number if kind is Kind.DEATH else number or 1), kinds, st.integers(0, 2)
)
news |= st.sampled_from([News(Kind.DEATH, 5), News(Kind.DEATH, 6), News(Kind.SUCCESS, 6)])


def _on_a_trip(verb: str) -> Callable[[int], Step]:
    async def step(world: World, at: int) -> None:
        if world.trips:
            await getattr(world, verb)(at % len(world.trips))

    return lambda at: lambda world: step(world, at)


def _send(name: str, terms: tuple[bool, bool]) -> Step:
    async def step(world: World) -> None:
        before = len(world.trips)
        await world.plan(name, over_cap=terms[0], again=terms[1])
        if len(world.trips) > before:
            await world.claim(before)

    return step


ON_A_TRIP = ("claim", "record", "succeed", "die", "expire", "end")
terms = st.sampled_from([(False, False), (False, False), (True, False), (False, True)])
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda batch: lambda world: world.tell(batch), st.lists(st.tuples(names, news), min_size=1, max_size=3)),
    st.builds(_send, names, terms),
    st.builds(lambda name, how: lambda world: world.plan(name, over_cap=how[0], again=how[1]), names, terms),
    *(st.builds(_on_a_trip(verb), st.integers(0, 9)) for verb in ON_A_TRIP),
    st.builds(lambda name: lambda world: world.discard(name), names),
)


@asynccontextmanager
async def a_world(place: Path | str) -> AsyncIterator[World]:
    async with both_stores(place) as stores:
        yield World(stores)


async def live(place: Path | str, story: list[Step]) -> None:
    async with a_world(place) as world:
        for step in story:
            await step(world)
            await world.check()
        for store in world.stores:
            assert await store.verify() is None


@settings(max_examples=60)
@given(st.lists(steps, max_size=12))
def test_news_and_acts_in_any_order_leave_what_the_highest_of_them_says(empty_file: Path, story: list[Step]) -> None:
    asyncio.run(live(empty_file, story))


@settings(max_examples=10)
@given(st.lists(steps, max_size=12))
def test_news_and_acts_leave_the_same_in_postgres(shared_postgres: str, story: list[Step]) -> None:
    asyncio.run(live(shared_postgres, story))


@settings(max_examples=5)
@given(st.lists(steps, max_size=12))
def test_news_and_acts_leave_the_same_in_mongodb(shared_mongodb: str, story: list[Step]) -> None:
    asyncio.run(live(shared_mongodb, story))


@pytest.mark.parametrize("ended", [False, True])
def test_a_letter_goes_again_only_if_no_redrive_waits_for_it(empty_file: Path, *, ended: bool) -> None:
    async def live() -> None:
        async with a_world(empty_file) as world:
            await world.tell([("a", News(Kind.DEATH, 0))])
            await _send("a", (False, False))(world)
            await world.record(0)
            if ended:
                await world.end(0)
            await world.check()
            await _send("a", (False, True))(world)
            await world.check()
            assert world.trips[1].generation == (2 if ended else None)

    asyncio.run(live())


@pytest.mark.parametrize("order", [*permutations(("record", "succeed", "die", "expire"))], ids=" ".join)
def test_a_letter_of_a_redrive_never_goes_back(empty_file: Path, order: Sequence[str]) -> None:
    async def live() -> None:
        async with a_world(empty_file) as world:
            await world.tell([("a", News(Kind.DEATH, 0))])
            await world.plan("a", over_cap=False, again=False)
            await world.claim(0)
            for verb in (*order, *reversed(order)):
                await getattr(world, verb)(0)
                await world.check()
            assert world.trips[0].status is ItemStatus.SUCCEEDED
            assert world.stories["a"].state is LetterState.RESOLVED

    asyncio.run(live())
