from pathlib import Path

import pytest

from redrive import App, wiring
from redrive.core.errors import ConfigError, MissingExtra


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDRIVE_BROKER", raising=False)
    monkeypatch.delenv("REDRIVE_STORE", raising=False)
    return tmp_path


async def test_an_sqlite_file_has_its_way_back_beside_the_workers(folder: Path) -> None:
    async with App("sqlite:///shop.db", name="shop").way_back() as begun:
        assert begun


async def test_a_broker_with_a_server_leaves_the_way_back_to_a_service(folder: Path) -> None:
    async with App("memory://", name="shop").way_back() as begun:
        assert not begun

    assert not (folder / "letters.db").exists()


async def test_a_store_in_the_broker_s_own_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRIVE_STORE", "sqlite:///shop.db")

    with pytest.raises(ConfigError, match="another file"):
        async with App("sqlite:///shop.db", name="shop").way_back():
            pass


async def test_without_the_store_s_extra_letters_stay_in_the_dlq(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MissingExtra("the letter store", extra="store")

    monkeypatch.setattr(wiring, "open_store", refuse)

    async with App("sqlite:///shop.db", name="shop").way_back() as begun:
        assert not begun

    assert "pip install 'redrive[store]'" in caplog.text
