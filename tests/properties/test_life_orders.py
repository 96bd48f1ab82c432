"""Whatever the order in which news of a letter arrives, it ends alike: by the rules, and in every store."""

from collections.abc import AsyncIterator, Callable, Sequence
from itertools import combinations, permutations
from pathlib import Path

import pytest

from redrive.core.life import Life, hear_death, hear_success
from redrive.core.ports.store import Store
from redrive.core.redrive import ItemStatus, answered, left, sent
from redrive.core.stored import Collected
from redrive.stores.memory import MemoryStore
from redrive.stores.sql import SqlStore
from redrive.testing.clock import ManualClock
from tests.properties.lives import Kind, News, story_of
from tests.properties.recount import check_counts, check_deaths, incidents_of, rows_of

Order = Sequence[News]

NEWS = (
    *(News(Kind.DEATH, generation) for generation in range(3)),
    *(News(Kind.SUCCESS, generation) for generation in (1, 2)),
    News(Kind.FAILURE, 1),
)
ORDERS: Sequence[Order] = [
    order for size in range(1, len(NEWS) + 1) for some in combinations(NEWS, size) for order in permutations(some)
]
SHORTER = [order for order in ORDERS if len(order) <= 4]


def told_again(order: Order) -> Order:
    """Everything, and then all of it once more, the last first."""
    return (*order, *reversed(order))


# ----------------------------------------------------------------------------------------------- the rules


def life_after(order: Order) -> Life | None:
    life: Life | None = None
    early: list[News] = []
    for news in order:
        if news.kind is Kind.DEATH:
            life = hear_death(life, news.generation)
        else:
            early.append(news)
        if life is not None:
            for kind, generation in early:
                life = hear_success(life, generation) if kind is Kind.SUCCESS else hear_death(life, generation)
            early.clear()
    return life


@pytest.mark.parametrize("size", range(1, len(NEWS) + 1))
def test_every_order_of_the_same_news_ends_in_the_same_state(size: int) -> None:
    for order in ORDERS:
        if len(order) != size:
            continue
        story, life = story_of(order), life_after(order)
        if life is None:
            assert not story.is_known
        else:
            assert (life.state, life.generation) == (story.state, story.generation), order
        assert life_after(told_again(order)) == life, f"told again: {order}"


def test_a_letter_of_a_redrive_ends_alike_in_every_order_and_success_is_final() -> None:
    moves: dict[str, Callable[[ItemStatus], ItemStatus]] = {
        "sent": sent,
        "ended": left,
        "succeeded": lambda status: answered(status, succeeded=True, same=False),
        "died": lambda status: answered(status, succeeded=False, same=True),
    }
    for size in range(1, len(moves) + 1):
        for order in permutations(moves, size):
            status = ItemStatus.CLAIMED
            for name in (*order, *reversed(order)):
                status = moves[name](status)
            assert status is final(order), order


def final(order: Sequence[str]) -> ItemStatus:
    ladder = {
        "succeeded": ItemStatus.SUCCEEDED,
        "died": ItemStatus.FAILED,
        "ended": ItemStatus.UNCONFIRMED,
        "sent": ItemStatus.SENT,
    }
    return next(status for name, status in ladder.items() if name in order)


# ----------------------------------------------------------------------------------------------- the stores


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    clock = ManualClock()
    if request.param == "memory":
        opened: Store = MemoryStore(clock=clock)
    else:
        is_file = request.param == "sqlite"
        opened = SqlStore(tmp_path / "letters.db" if is_file else request.getfixturevalue("postgres_url"), clock=clock)
    yield opened
    await opened.aclose()


async def tell(store: Store, orders: Sequence[Order], *, at_once: int) -> None:
    """Each order to a letter of its own, so many of its events in one batch."""
    longest = max(map(len, orders))
    for at in range(0, longest, at_once):
        batch = [(str(number), news) for number, order in enumerate(orders) for news in order[at : at + at_once]]
        await store.collect(
            [one for name, news in batch for one in news.letters(name)],
            [one for name, news in batch for one in news.outcomes(name)],
        )


@pytest.mark.parametrize("at_once", [1, 3, 8], ids=["one by one", "by threes", "in one batch"])
async def test_every_order_of_the_same_news_ends_alike_in_a_store(store: Store, at_once: int) -> None:
    await tell(store, [told_again(order) for order in SHORTER], at_once=at_once)

    found = {row.letter_id: row for row in await rows_of(store)}
    for number, order in enumerate(SHORTER):
        story, row = story_of(order), found.pop(str(number), None)
        assert (row is not None) is story.is_known, order
        if row is not None:
            assert (row.life.state, row.life.generation) == (story.state, story.generation), order
    assert not found
    await check_counts(store)
    deaths = [one for number, order in enumerate(SHORTER) for news in order for one in news.letters(str(number))]
    await check_deaths(store, deaths)


async def test_every_order_leaves_the_same_attempts_and_the_same_reports(store: Store) -> None:
    orders = [*permutations(NEWS[:-1])]
    await tell(store, [told_again(order) for order in orders], at_once=1)

    for number, order in enumerate(orders):
        stored = await store.get(str(number))
        assert [attempt.generation for attempt in stored.letter.attempts] == [0, 1, 2], order
        assert (stored.letter.generation, stored.letter.fingerprint) == (2, "f2"), order
        assert [(one.generation, one.succeeded) for one in stored.outcomes] == [(1, True), (2, True)], order


async def test_an_outcome_that_comes_before_its_letter_waits_for_it(store: Store) -> None:
    for news in (News(Kind.SUCCESS, 1), News(Kind.FAILURE, 2)):
        await store.collect([], news.outcomes("early"))
    assert await rows_of(store) == []
    await check_counts(store)

    await store.collect(News(Kind.DEATH, 0).letters("early"))
    (row,) = await rows_of(store)

    assert (row.life.state.value, row.life.generation) == ("open", 2)
    await check_counts(store)


async def test_news_told_again_changes_nothing_but_what_is_counted_as_known(store: Store) -> None:
    orders = [*permutations(NEWS[:4], 3)]
    await tell(store, orders, at_once=1)
    before = [await rows_of(store), await store.stats(), await incidents_of(store)]

    for number, order in enumerate(orders):
        name = str(number)
        letters = [one for news in order for one in news.letters(name)]
        outcomes = [one for news in order for one in news.outcomes(name)]
        assert await store.collect(letters, outcomes) == Collected(known=len(order)), order

    assert [await rows_of(store), await store.stats(), await incidents_of(store)] == before
