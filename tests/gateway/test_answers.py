"""What the port `Answers` promises, kept by SQLite and by Redis."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from redrive.brokers.redis.answers import RedisAnswers
from redrive.brokers.sqlite.answers import SqliteAnswers
from redrive.core.errors import BrokerError, BrokerUnavailable
from redrive.core.ports.answers import Answers
from redrive.testing import ManualClock

Open = Callable[[], Answers]


@pytest.fixture(params=["sqlite", "redis"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "sqlite":
        return lambda: SqliteAnswers(tmp_path / "answers.db", clock=ManualClock())
    url = request.getfixturevalue("redis_url")
    return lambda: RedisAnswers(url, prefix=tmp_path.name)


async def test_an_answer_is_there_for_everybody(opened: Open) -> None:
    one, other = opened(), opened()
    assert await one.get("r1") is None
    await one.put("r1", b"\x00answer")

    assert await other.get("r1") == b"\x00answer"
    assert await other.get("r2") is None
    await one.aclose()
    await one.aclose()
    await other.aclose()


async def test_of_two_answers_the_first_stays(opened: Open) -> None:
    answers = opened()
    await answers.put("r1", b"first")
    await answers.put("r1", b"second")

    assert await answers.get("r1") == b"first"
    await answers.aclose()


async def test_an_answer_in_a_file_is_forgotten_after_its_time(tmp_path: Path) -> None:
    clock = ManualClock()
    answers = SqliteAnswers(tmp_path / "answers.db", clock=clock, keep=timedelta(hours=1))
    await answers.put("r1", b"old")
    clock.advance("59m")
    assert await answers.get("r1") == b"old"
    clock.advance("1m")
    assert await answers.get("r1") is None

    await answers.put("r1", b"new")
    assert await answers.get("r1") == b"new"
    await answers.aclose()


async def test_closed_answers_are_not_to_be_had(tmp_path: Path) -> None:
    answers = SqliteAnswers(tmp_path / "answers.db", clock=ManualClock())
    await answers.aclose()
    with pytest.raises(BrokerUnavailable):
        await answers.get("r1")


async def test_a_file_that_is_none_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "answers.db").write_bytes(b"this is no database, and long enough to be seen as none" * 100)
    answers = SqliteAnswers(tmp_path / "answers.db", clock=ManualClock())
    with pytest.raises(BrokerError):
        await answers.put("r1", b"answer")
    await answers.aclose()
