import sys
from pathlib import Path

import pytest

from redrive import wiring
from redrive.core.errors import ConfigError, LetterNotFound, MissingExtra
from redrive.stores.memory import MemoryStore
from redrive.testing.clock import ManualClock


def test_a_store_is_found_by_its_url() -> None:
    assert isinstance(wiring.open_store("memory://", clock=ManualClock()), MemoryStore)


@pytest.mark.parametrize("url", ["letters.db", "mysql://here", "sqlite://", "sqlite:///"])
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="store: expected"):
        wiring.open_store(url)


def test_looking_does_not_begin_a_file(tmp_path: Path) -> None:
    with pytest.raises(LetterNotFound, match="no letter store at"):
        wiring.open_existing_store(f"sqlite:///{tmp_path}/letters.db")
    assert [*tmp_path.iterdir()] == []


async def test_a_file_that_is_there_is_opened(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/letters.db"
    store = wiring.open_store(url)
    await store.stats()
    await store.aclose()

    again = wiring.open_existing_store(url)
    assert (await again.stats()).total == 0
    await again.aclose()


@pytest.mark.parametrize(
    "url", ["redis://here", "rediss://here", "unix:///here", "redis+sentinel://here/a", "redis+cluster://here"]
)
def test_every_form_of_redis_has_one_name_in_letters(url: str) -> None:
    assert wiring.connect(url).name == "redis"
    assert wiring.connect(url, name="shop").name == "shop"


def test_a_missing_extra_is_named_with_its_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("redrive.brokers.redis")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(MissingExtra, match=r"pip install 'redrive\[redis\]'"):
        wiring.connect("redis://here")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_missing_driver_for_postgres_is_named_with_its_pip_command(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "redrive.stores.sql.postgres", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "asyncpg" else name)

    with pytest.raises(MissingExtra, match=r"pip install 'redrive\[postgres\]'"):
        wiring.open_store(f"{scheme}://ann@here/letters")


@pytest.mark.parametrize(
    "url",
    [
        "redis://here:port",
        "redis://here?colour=red",
        "redis://here?socket_connect_timeout=soon",
        "redis://here?durability=often",
        "redis+sentinel://here/primary?colour=red",
        "redis+cluster://here?colour=red",
    ],
)
def test_a_mistake_in_the_url_of_a_redis_is_told_at_once(url: str) -> None:
    with pytest.raises(ConfigError):
        wiring.connect(url)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (wiring.KafkaDeadLetterQueue, "kafka://localhost:9092"),
        (wiring.RedisDeadLetterQueue, "redis://localhost:6379"),
    ],
)
def test_dead_letters_of_one_kind_of_broker_want_its_url(
    queue: type[wiring.KafkaDeadLetterQueue | wiring.RedisDeadLetterQueue], expected: str
) -> None:
    with pytest.raises(ConfigError, match=rf"expected a URL such as {expected}, got 'sqlite:///shop\.db'"):
        queue("sqlite:///shop.db")


@pytest.mark.parametrize("scheme", ["redis://", "rediss://", "unix:///", "redis+cluster://"])
def test_dead_letters_on_redis_take_every_url_of_it_and_tell_a_mistake_at_once(scheme: str) -> None:
    wiring.RedisDeadLetterQueue(f"{scheme}here")

    with pytest.raises(ConfigError):
        wiring.RedisDeadLetterQueue(f"{scheme}here?durability=often")
