from pathlib import Path

import pytest

from redrive import wiring
from redrive.core.errors import ConfigError, LetterNotFound
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
