import shlex
import sys
from types import ModuleType
from typing import Any

import pytest

import redrive
from redrive.console.snippets import Snippets, snippets_of
from redrive.core.life import LetterState, Life
from redrive.core.stored import StoredLetter
from tests.unit.core.letters import a_letter

SERVICE = "http://127.0.0.1:8800"


def snippets(payload: bytes | None = b'{"order": 1}', *, is_hidden: bool = False, **changes: Any) -> Snippets:
    stored = StoredLetter(letter=a_letter(payload, **changes), life=Life(LetterState.OPEN, 0))
    return snippets_of(stored, service=SERVICE, needs_token=True, is_hidden=is_hidden)


def test_curl_looks_at_the_letter_and_only_another_text_sends_it_back() -> None:
    found = snippets(letter_id="l-1")

    assert shlex.split(found.curl) == [
        *("curl", "-sS", "-H", "Authorization: Bearer $REDRIVE_TOKEN", f"{SERVICE}/api/v1/letters/l-1")
    ]
    assert shlex.split(found.send_curl)[-3:] == [
        *("-d", '{"letter_ids": ["l-1"], "dry_run": false}', f"{SERVICE}/api/v1/redrives")
    ]


def test_the_command_line_shows_and_tries_it_and_only_another_text_sends_it_back() -> None:
    found = snippets(letter_id="l-1", handler="shop.tasks.charge")

    assert [shlex.split(one, comments=True) for one in found.cli.splitlines()] == [
        ["redrive", "letters", "show", "l-1", "--url", SERVICE],
        ["redrive", "letters", "try", "l-1", "shop.tasks:app", "--url", SERVICE],
    ]
    assert shlex.split(found.send_cli) == ["redrive", "letters", "redrive", "l-1", "--url", SERVICE, "--yes"]


@pytest.mark.parametrize("letter_id", ["; rm -rf ~", "$(reboot)", "a'b\"c", "a\nreboot", "`id`", "\x1b]0;x\x07"])
def test_a_hostile_id_stays_one_word(letter_id: str) -> None:
    found = snippets(letter_id=letter_id)

    words = [shlex.split(one, comments=True) for one in [*found.cli.splitlines(), found.send_cli]]
    assert [len(one) for one in words] == [6, 7, 7]
    said = f"{found.curl}\n{found.send_curl}"
    assert "\x1b" not in said
    assert "reboot" not in [one.partition(" ")[0] for one in said.splitlines()]


async def test_the_test_fails_as_the_letter_did_and_passes_once_the_handler_is_mended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = redrive.App("memory://", name="shop")
    missing = ["customer"]

    @app.consumer("orders", retry=0)
    async def charge(order: dict[str, Any]) -> None:
        assert order == {"order": 1}
        for name in missing:
            raise KeyError(name)

    module = ModuleType("shop_of_a_test")
    module.app = app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    text = snippets(handler="shop_of_a_test.charge").test
    namespace: dict[str, Any] = {}
    exec(compile(text, "test_letter.py", "exec"), namespace)  # noqa: S102 - it is what a person would run

    assert await namespace["failures"]() == ["KeyError: 'customer'"]
    missing.clear()
    assert await namespace["failures"]() == []
    assert [name for name in namespace if name.startswith("test_")] == ["test_letter_5f2b8c0d9e1a_is_handled"]


def test_an_app_that_nobody_knows_has_to_be_put_in() -> None:
    found = snippets()

    assert "from your_module import app" in found.test
    assert "Put in where your app is." in found.test_note


def test_a_masked_letter_and_a_large_one_are_written_as_a_test_by_a_command() -> None:
    for found in (snippets(letter_id="l-1", is_hidden=True), snippets(b"x" * 100_000, letter_id="l-1")):
        assert found.test == (
            f"redrive letters export l-1 --pytest --app your_module:app --url {SERVICE} > test_letter.py"
        )


def test_a_message_that_was_not_kept_is_no_test() -> None:
    found = snippets(None)

    assert (found.test, found.test_note) == ("", "No copy of the message was kept: there is nothing to run a test on.")
