import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from redrive import service as module
from redrive.brokers.memory import MemoryBroker
from redrive.config import BrokerSettings, RetentionSettings, ServiceSettings, Settings
from redrive.core.errors import BrokerUnavailable, QueueNotFound, StoreUnavailable
from redrive.core.life import LetterState
from redrive.core.query import Query
from redrive.service import Service, open_service, tended
from redrive.stores.memory import MemoryStore
from redrive.testing.clock import ManualClock
from redrive.wiring import connect
from tests.unit.core.letters import a_letter


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not await true():  # noqa: ASYNC110 - other tasks and threads bring it about
            await asyncio.sleep(0.01)


def settings(*names: str, **service: Any) -> Settings:
    brokers = tuple(BrokerSettings(name=name, url=f"sqlite:///{name}.db") for name in names)
    return Settings(brokers=brokers, service=ServiceSettings(**service))


async def bury(name: str, letter_id: str) -> None:
    broker = connect(f"sqlite:///{name}.db")
    await broker.dead_letters("orders").send(a_letter(b"1", letter_id=letter_id, queue="orders"))
    await broker.aclose()


async def brokers_of(service: Service) -> dict[str, str]:
    return {row.letter_id: row.broker for row in await service.store.select(Query(), limit=100)}


# ------------------------------------------------------------------------------------------------ collecting


async def test_each_broker_has_its_collector_and_its_name_in_letters() -> None:
    await bury("a", "1")
    await bury("b", "2")

    async with open_service(settings("a", "b")) as service:
        assert [*service.collectors] == ["a", "b"]
        await until(lambda: _equal(brokers_of(service), {"1": "a", "2": "b"}))


async def _equal(found: Any, expected: object) -> bool:
    return bool(await found == expected)


@pytest.mark.parametrize(("queues", "hints"), [(None, 1), (("orders",), 0)])
async def test_a_broker_that_cannot_list_all_its_queues_is_told_of_unless_they_are_named(
    queues: tuple[str, ...] | None, hints: int, caplog: pytest.LogCaptureFixture
) -> None:
    broker = BrokerSettings(url="redis://127.0.0.1:1", queues=queues)
    with caplog.at_level(logging.INFO):
        async with open_service(replace(settings(redrive=False), brokers=(broker,))):
            pass

    assert sum("name them (--queue" in said for said in caplog.messages) == hints


async def test_a_broker_that_lists_all_its_queues_needs_no_hint(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with open_service(settings("a", redrive=False)):
            pass

    assert "--queue" not in caplog.text


async def test_collecting_may_be_left_to_others() -> None:
    async with open_service(settings("a", collect=False, redrive=False)) as service:
        assert service.collectors == {}
        assert await service.ready() == {"store": None, "broker:a": None}


async def test_what_is_not_there_is_not_begun_if_it_is_only_to_be_emptied(folder: Path) -> None:
    with pytest.raises(QueueNotFound):
        async with open_service(settings("a"), create=False):
            pass
    assert not (folder / "a.db").exists()


async def test_a_broker_that_is_away_at_the_start_is_told_and_caught_up_with(folder: Path) -> None:
    there = replace(settings("a"), brokers=(BrokerSettings(name="a", url="sqlite:///data/a.db"),))
    with pytest.raises(BrokerUnavailable):
        async with open_service(there, patient=False):
            pass

    async with open_service(there) as service:
        assert (await service.ready())["broker:a"] is not None

        (folder / "data").mkdir()
        await bury("data/a", "1")
        await until(lambda: _equal(brokers_of(service), {"1": "a"}))
        await until(lambda: _equal(service.ready(), {"store": None, "broker:a": None}))


async def test_a_store_that_is_away_at_the_start_is_told_and_caught_up_with(folder: Path) -> None:
    await bury("a", "1")
    async with open_service(replace(settings("a"), store="sqlite:///data/letters.db")) as service:
        ready = await service.ready()
        assert (ready["broker:a"], ready["store"] is None) == (None, False)

        (folder / "data").mkdir()
        await until(lambda: _has(service, {"1": "a"}))


async def _has(service: Service, letters: dict[str, str]) -> bool:
    try:
        return await brokers_of(service) == letters
    except StoreUnavailable:
        return False


# ------------------------------------------------------------------------------------------------- readiness


class Silent(MemoryStore):
    """A store that takes its time."""

    def __init__(self) -> None:
        super().__init__(clock=ManualClock())
        self.asked = 0
        self.answer = asyncio.Event()

    async def unfinished(self) -> Any:
        self.asked += 1
        await self.answer.wait()
        return await super().unfinished()


async def test_a_dependency_that_does_not_answer_is_asked_once_however_many_want_to_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ANSWER_WITHIN", 0.05)
    store = Silent()
    service = Service(store=store, brokers={"memory": MemoryBroker(clock=ManualClock())})

    answers = await asyncio.gather(*(service.ready() for _ in range(3)))
    assert answers == [{"store": "no answer within 0.05 seconds", "broker:memory": None}] * 3
    assert store.asked == 1

    store.answer.set()
    await until(lambda: _equal(service.ready(), {"store": None, "broker:memory": None}))


async def test_what_is_wrong_is_said_without_passwords() -> None:
    class Away(MemoryStore):
        async def unfinished(self) -> Any:
            raise StoreUnavailable("cannot reach postgresql://shop:s3cret@db/letters")

    service = Service(store=Away(clock=ManualClock()), brokers={})

    assert await service.ready() == {"store": "cannot reach postgresql://shop:***@db/letters"}


# ------------------------------------------------------------------------------------------------- retention


async def test_rules_of_retention_are_applied_now_and_every_hour() -> None:
    clock = ManualClock()
    store = MemoryStore(clock=clock)
    service = Service(store=store, brokers={"memory": MemoryBroker(clock=clock)}, clock=clock)
    old = replace(a_letter(b"1", letter_id="old"), failed_at=clock.now() - timedelta(days=91))
    fresh = replace(
        a_letter(b"1", letter_id="fresh"), failed_at=clock.now() - timedelta(days=90) + timedelta(minutes=9)
    )
    await store.collect([old, fresh])
    rules = (RetentionSettings(older_than=timedelta(days=90), state=LetterState.OPEN),)

    async def left() -> set[str]:
        clock.advance("1m")
        return {row.letter_id for row in await store.select(Query(), limit=10)}

    async with tended(service, Settings(retention=rules)):
        await until(lambda: _equal(left(), {"fresh"}))
        await until(lambda: _equal(left(), set()))
    acts = (await store.records()).rows
    assert {record.who for record in acts} == {"retention"}
    assert len({record.operation_id for record in acts}) == 2, "a rule that removes nothing is no act"
