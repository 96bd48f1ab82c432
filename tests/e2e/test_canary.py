"""The redrive protocol on real brokers, a real worker and a real collector: canaries, verdicts, late answers."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from redrive.core.errors import StateConflict
from redrive.core.life import GENERATION_CAP, LetterState, Life
from redrive.core.redrive import ItemStatus, Redrive
from redrive.triage import editor, letters, redrives
from tests.e2e.way_back_shop import Shop, broken, open_shop, works
from tests.servers.redis import RedisServer, ask

SOON = timedelta(milliseconds=300)
CANARY = (1, 5, 25)
OPEN, RESOLVED = LetterState.OPEN, LetterState.RESOLVED
SUCCEEDED = (ItemStatus.SUCCEEDED,)
FAILED = (ItemStatus.FAILED, ItemStatus.FAILED_OTHERWISE)


class OnSqlite:
    """Graveyards whose queue is a file beside the letters."""

    def __init__(self, _request: pytest.FixtureRequest) -> None:
        """Nothing is needed."""

    def url(self, folder: Path) -> str:
        return f"sqlite:///{folder / 'queue.db'}"

    def copy(self, graveyard: Path, folder: Path) -> str:
        shutil.copytree(graveyard, folder, dirs_exist_ok=True)
        return self.url(folder)


class OnRedis:
    """Graveyards whose queue is in a database of its own; what a test works on is a copy in another one."""

    COPY_ALL = "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', ARGV[1]) end"
    FREE = 9

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._server: RedisServer = request.getfixturevalue("redis_server")
        self._databases: dict[Path, int] = {}

    def url(self, folder: Path) -> str:
        return self._empty(self._databases.setdefault(folder, self.FREE + 1 + len(self._databases)))

    def copy(self, graveyard: Path, folder: Path) -> str:
        shutil.copytree(graveyard, folder, dirs_exist_ok=True)
        url = self._empty(self.FREE)
        ask(f"{self._server.url}/{self._databases[graveyard]}", "EVAL", self.COPY_ALL, 0, self.FREE)
        return url

    def _empty(self, database: int) -> str:
        url = f"{self._server.url}/{database}"
        ask(url, "FLUSHDB")
        return url


@dataclass(frozen=True)
class Graveyards:
    """Folders with so many dead letters, made once."""

    ground: OnSqlite | OnRedis
    folders: dict[int, Path]


@pytest.fixture(scope="module", params=[OnSqlite, OnRedis], ids=["sqlite", "redis"])
def graveyards(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Graveyards:
    ground = request.param(request)
    folders: dict[int, Path] = {}

    async def bury() -> None:
        for count in (1000, 20):
            folders[count] = tmp_path_factory.mktemp(f"dead-{count}-")
            async with open_shop(folders[count], ground.url(folders[count])) as shop:
                await shop.die(count)

    asyncio.run(bury())
    return Graveyards(ground, folders)


@pytest.fixture
async def thousand(graveyards: Graveyards, tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path, graveyards.ground.copy(graveyards.folders[1000], tmp_path)) as shop:
        yield shop


@pytest.fixture
async def twenty(graveyards: Graveyards, tmp_path: Path) -> AsyncIterator[Shop]:
    async with open_shop(tmp_path, graveyards.ground.copy(graveyards.folders[20], tmp_path)) as shop:
        yield shop


# ----------------------------------------------------------------------------------------------- a thousand letters


async def test_with_a_handler_still_broken_it_stops_after_the_first_with_999_untouched(thousand: Shop) -> None:
    thousand.fault = broken
    redrive = await thousand.begin(canary=CANARY)

    async with thousand.worker():
        verdict = await thousand.carry_out(redrive)

    assert verdict == "stopped after 1: same failure, 999 untouched"
    assert await thousand.states() == {"open": 1000}
    ((canary, number),) = thousand.runs.items()
    assert number == 1, "a canary has one attempt"
    stored = await thousand.stored()
    assert [order for order, one in stored.items() if one.life != Life(OPEN, 0)] == [canary[0]]
    attempts = stored[canary[0]].letter.attempts
    assert [(one.generation, one.number) for one in attempts] == [(0, 1), (0, 2), (0, 3), (1, 1)]


async def test_with_a_fixed_handler_it_finishes_with_1000_resolved_and_0_unconfirmed(thousand: Shop) -> None:
    redrive = await thousand.begin(canary=CANARY)

    async with thousand.worker():
        verdict = await thousand.carry_out(redrive)

    assert verdict == ("Sent 1, it succeeded on version v2; sent 5, then 25, then 969: 1,000 resolved, 0 unconfirmed")
    assert await thousand.states() == {"resolved": 1000}
    assert thousand.runs == {(order, 1): 1 for order in range(1000)}


async def test_with_one_of_ten_failing_differently_it_pauses_says_so_and_goes_on_when_told(thousand: Shop) -> None:
    redrive = await thousand.begin(canary=(10,))
    unlucky: list[int] = []

    def one_fails(order: int, _: int) -> Exception | None:
        if not unlucky:
            unlucky.append(order)
        return KeyError("price") if order in unlucky else None

    thousand.fault = one_fails
    async with thousand.worker():
        verdict = await thousand.carry_out(redrive)
        assert verdict == ("Sent 10, succeeding on version v2; paused: 1 failed in another way; 990 untouched")
        assert await thousand.states() == {"open": 991, "resolved": 9}

        await redrives.resume(thousand.desk, redrive.redrive_id)
        await thousand.carry_out(redrive)

    assert await thousand.states() == {"open": 1, "resolved": 999}
    assert await thousand.lives() == {(OPEN, 1), (RESOLVED, 1)}


async def test_with_no_consumer_alive_it_says_so_and_waits_for_one(thousand: Shop) -> None:
    redrive = await thousand.begin(canary=CANARY)

    carrying = asyncio.ensure_future(thousand.carry_out(redrive))
    await thousand.until_told("no consumer is alive on this queue")
    assert await thousand.states() == {"open": 999, "redriving": 1}
    async with thousand.worker():
        await carrying

    assert await thousand.states() == {"resolved": 1000}


async def test_with_a_consumer_that_is_paused_it_says_so(twenty: Shop) -> None:
    await twenty.broker.pause("orders", group="shop", why="a rollout")
    redrive = await twenty.begin(canary=CANARY)

    async with twenty.worker():
        carrying = asyncio.ensure_future(twenty.carry_out(redrive))
        await twenty.until_told("the consumer is paused: a rollout")
        await twenty.broker.pause("orders", group="shop", why=None)
        await carrying

    assert await twenty.states() == {"resolved": 20}


async def test_with_a_consumer_of_the_version_that_failed_it_says_so(twenty: Shop) -> None:
    redrive = await twenty.begin(canary=CANARY)
    twenty.may_run.clear()

    async with twenty.worker("v1"):
        carrying = asyncio.ensure_future(twenty.carry_out(redrive))
        await twenty.until_told("the consumer's version is unchanged since the failure: v1")
        twenty.may_run.set()
        await carrying

    assert await twenty.states() == {"resolved": 20}


async def test_two_redrives_of_the_same_letters_send_each_of_them_once(thousand: Shop) -> None:
    selection = await thousand.select()
    both = [await thousand.begin(selection, canary=(3,)) for _ in range(2)]

    async with thousand.worker():
        await asyncio.gather(*(thousand.carry_out(one) for one in both))

    progress = [(await redrives.show(thousand.desk, one.redrive_id)).progress for one in both]
    assert sum(one.count(ItemStatus.SUCCEEDED) for one in progress) == 1000
    assert sum(one.count(ItemStatus.SKIPPED) for one in progress) == 1000
    assert thousand.runs == {(order, 1): 1 for order in range(1000)}
    assert await thousand.states() == {"resolved": 1000}


# ----------------------------------------------------------------------------------------------- since the preview


async def test_letters_changed_since_the_preview_are_skipped(twenty: Shop) -> None:
    selection = await twenty.select()
    thrown_away = selection.rows[:3]
    mended = selection.rows[3].letter_id
    redrive = await twenty.begin(selection)
    await letters.discard(twenty.desk, await twenty.select(letter_ids=[row.letter_id for row in thrown_away]))
    await editor.edit(twenty.desk, mended, body=b"4711")

    async with twenty.worker():
        verdict = await twenty.carry_out(redrive)

    assert verdict == (
        "Sent 16, succeeding on version v2: 16 resolved, 0 unconfirmed"
        ", 4 skipped, changed since the preview or without a payload to send"
    )
    assert await twenty.states() == {"discarded": 3, "open": 1, "resolved": 16}


async def test_a_relapse_reopens_the_same_letter_and_the_next_redrive_resolves_it(twenty: Shop) -> None:
    twenty.fault = lambda order, generation: ValueError("again") if (order, generation) == (7, 1) else None
    async with twenty.worker():
        await twenty.carry_out(await twenty.begin())
        assert await twenty.states() == {"open": 1, "resolved": 19}
        await twenty.carry_out(await twenty.begin())

    stored = (await twenty.stored())[7]
    assert (stored.life.state, stored.life.generation) == (RESOLVED, 2)
    assert [one.generation for one in stored.letter.attempts] == [0, 0, 0, 1, 1, 1]
    assert len(stored.redrive_ids) == 2
    assert await twenty.states() == {"resolved": 20}


# ----------------------------------------------------------------------------------------------- late answers


async def lose(shop: Shop, **terms: Any) -> Redrive:
    """A redrive of everything that nobody has answered in time."""
    redrive = await shop.begin(report_within=SOON, **terms)
    assert await shop.carry_out(redrive) == "Sent 20: 0 resolved, 20 unconfirmed"
    return redrive


async def test_a_late_report_still_moves_what_is_unconfirmed(twenty: Shop) -> None:
    redrive = await lose(twenty)

    async with twenty.worker():
        await twenty.settled()

    assert await twenty.states() == {"resolved": 20}
    assert await twenty.verdict(redrive) == "Sent 20, succeeding on version v2: 20 resolved, 0 unconfirmed"


async def test_a_report_that_comes_twice_changes_nothing(twenty: Shop) -> None:
    async with twenty.worker():
        redrive = await twenty.begin()
        verdict = await twenty.carry_out(redrive)
    before = await twenty.stored()

    for one in before.values():
        (outcome,) = one.outcomes
        await twenty.report(outcome)
        await twenty.report(replace(outcome, succeeded=False))
    await twenty.settled()

    assert await twenty.verdict(redrive) == verdict
    after = await twenty.stored()
    assert {order: one.life for order, one in after.items()} == {order: one.life for order, one in before.items()}


@pytest.mark.parametrize(("dies_in", "state"), [(2, OPEN), (1, RESOLVED)])
async def test_of_two_generations_that_are_out_the_later_one_says_how_it_ends(
    twenty: Shop, dies_in: int, state: LetterState
) -> None:
    redrive = await lose(twenty)
    again = await lose(twenty, again=True)
    twenty.fault = lambda _, generation: ValueError("late") if generation == dies_in else None

    async with twenty.worker():
        await twenty.settled()

    assert await twenty.lives() == {(state, 2)}
    statuses = {1: FAILED, 2: SUCCEEDED} if dies_in == 1 else {1: SUCCEEDED, 2: FAILED}
    for generation, one in enumerate((redrive, again), 1):
        progress = (await redrives.show(twenty.desk, one.redrive_id)).progress
        assert progress.count(*statuses[generation]) == 20


async def test_the_unconfirmed_are_sent_again_only_when_asked_for(twenty: Shop) -> None:
    selection = await twenty.select()
    await lose(twenty)
    out = await twenty.select(letter_ids=[*selection.versions()])
    plan = await twenty.plan(out)
    assert plan.remarks == [
        "20 left out: redriving, sent before and not heard of; sent once more only if again is asked for"
    ]
    with pytest.raises(StateConflict):
        await redrives.create(twenty.desk, plan)

    twenty.may_run.clear()
    carrying = asyncio.ensure_future(twenty.carry_out(await twenty.begin(out, again=True)))
    async with twenty.worker():
        await twenty.until(twenty.lives, {(LetterState.REDRIVING, 2)})
        twenty.may_run.set()
        verdict = await carrying
        await twenty.settled()

    assert "20 resolved, 0 unconfirmed" in verdict
    assert await twenty.lives() == {(RESOLVED, 2)}


# ----------------------------------------------------------------------------------------------- the cap


async def test_at_the_generation_cap_letters_are_parked_and_leave_only_over_it_which_is_audited(twenty: Shop) -> None:
    selection = await twenty.select()
    twenty.fault = broken
    async with twenty.worker():
        for _ in range(GENERATION_CAP):
            await twenty.carry_out(await twenty.begin())
        assert await twenty.lives() == {(LetterState.PARKED, GENERATION_CAP)}
        parked = await twenty.select(letter_ids=[*selection.versions()])
        plan = await twenty.plan(parked)
        assert plan.remarks == ["20 left out: parked, at the generation cap; sent only if over-cap is asked for"]
        with pytest.raises(StateConflict):
            await redrives.create(twenty.desk, plan)

        twenty.fault = works
        over = await twenty.begin(parked, over_cap=True)
        await twenty.carry_out(over)

    assert await twenty.lives() == {(RESOLVED, GENERATION_CAP + 1)}
    (latest, *_) = (await twenty.store.records(letter_id=parked.rows[0].letter_id)).rows
    assert (latest.who, latest.verb) == ("sam", "letters.redrive")
    assert latest.detail == {"redrive": over.redrive_id, "generation": GENERATION_CAP + 1}
    assert (await twenty.store.redrive(over.redrive_id)).over_cap
    assert await twenty.store.verify() is None
