"""The keys that letters are encrypted with: where they come from, and that a mistake does not repeat them."""

import base64
from pathlib import Path

import pytest

import redrive
from redrive.config import Settings, load_keys, load_settings
from redrive.core.errors import ConfigError
from redrive.testing import run
from redrive.wiring import cipher

ONE, TWO = b"\xfb\xff" * 16, b"2" * 32
TEXT = f"new={base64.b64encode(TWO).decode()},old={base64.urlsafe_b64encode(ONE).decode()}"


def test_keys_come_from_a_variable_the_current_one_first() -> None:
    assert [*load_keys(None, {"REDRIVE_ENCRYPTION_KEYS": TEXT}).items()] == [("new", TWO), ("old", ONE)]


def test_or_from_a_file_with_comments(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# since May\n new = {base64.b64encode(TWO).decode()}  # the one in use\n\n")

    assert load_keys(str(file), {}) == {"new": TWO}
    assert load_settings({"REDRIVE_ENCRYPTION_KEYS_FILE": str(file)}).encryption_keys_file == str(file)


def test_without_either_there_are_none() -> None:
    assert load_keys(None, {}) == {}
    assert cipher(Settings()) is None
    load_settings({"REDRIVE_ENCRYPTION_KEYS": TEXT})  # is no slip of the pen


@pytest.mark.parametrize(
    "text", ["canary", "k=canary", f"k={base64.b64encode(b'canary').decode()}", f"a b={TEXT}", f"{TEXT},{TEXT}", "=,"]
)
def test_a_mistake_is_told_and_not_repeated(text: str, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(text.replace(",", "\n"))
    from_variable: tuple[str | None, dict[str, str]] = (None, {"REDRIVE_ENCRYPTION_KEYS": text})
    for where, environ in (from_variable, (str(file), {})):
        with pytest.raises(ConfigError) as caught:
            load_keys(where, environ)
        assert "canary" not in str(caught.value)
        assert base64.b64encode(TWO).decode() not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_a_file_without_keys_is_a_mistake(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"encryption\.keys_file"):
        load_keys(str(file), {})


async def test_a_consumer_whose_letters_are_encrypted_does_not_start_without_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("REDRIVE_ENCRYPTION_KEYS", raising=False)
    app = redrive.App("memory://", name="shop")

    @app.consumer("orders", payload="encrypted")
    async def charge(order: bytes) -> None: ...

    with pytest.raises(ConfigError, match="payload: 'encrypted' needs a key"):
        async with run(app):
            pass
    with pytest.raises(ConfigError, match="payload: 'encrypted' needs a key"):
        redrive.dead_letter("memory://", source="orders", payload="encrypted")


async def test_its_letters_are_sealed_before_they_leave_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRIVE_ENCRYPTION_KEYS", TEXT)
    app = redrive.App("memory://", name="shop")

    @app.consumer("orders", payload="encrypted", retry=0)
    async def charge(order: bytes) -> None:
        raise ValueError

    async with run(app) as rehearsal:
        await rehearsal.publish("orders", b"canary", key=b"canary", headers={"a": "canary"})
        await rehearsal.drain()

    letter = rehearsal.letters.one()
    assert letter.headers == (("rd-sealed", b"new"),)
    assert "canary" not in repr(letter)
