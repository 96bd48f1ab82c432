import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from redrive.core.attempt import Attempt
from redrive.core.letter import payload_hash
from redrive.core.reason import Reason
from tests.unit.cli.conftest import AT, Said, Shop, a_letter

FIRST = f"{1:032x}"


def named(number: int) -> str:
    return f"{number:x}".ljust(32, "0")


@pytest.fixture
def shop(either: Shop) -> Shop:
    return either


@pytest.fixture
def kept(shop: Shop) -> Shop:
    letters = [
        a_letter(
            number,
            letter_id=named(number),
            payload_sha256=payload_hash(b'{"id": %d}' % number),
            fingerprint="aaaa" if number < 9 else "bbbb",
            error_type="shop.OutOfStock" if number < 9 else "shop.Timeout",
            failed_at=AT + timedelta(hours=number),
            queue="orders" if number < 9 else "mail",
            kind="llm" if number == 12 else "message",
        )
        for number in range(1, 13)
    ]
    shop.collect(*letters)
    return shop


def facts(said: Said) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.lines]


def test_the_list_shows_the_open_letters_the_latest_first(kept: Shop) -> None:
    said = kept.run("letters", "list", "--count", "3")

    assert said.lines[0].split() == ["letter", "age", "queue", "state", "gen", "reason", "error"]
    assert [line.split()[0] for line in said.lines[1:]] == [named(number)[:12] for number in (12, 11, 10)]
    assert "Timeout: nothing left" in said.lines[1]
    assert kept.run("letters", "--count", "3").out == said.out


def test_the_list_goes_on_behind_a_page(kept: Shop) -> None:
    first = kept.run("letters", "list", "--count", "7", "--json")
    cursor = first.err.split("--after ")[1].strip()
    second = kept.run("letters", "list", "--count", "7", "--json", "--after", cursor)

    assert [fact["letter_id"] for fact in facts(first) + facts(second)] == [
        named(number) for number in range(12, 0, -1)
    ]
    assert second.err == ""


def test_a_cursor_that_is_none_is_one_clear_line(kept: Shop) -> None:
    said = kept.run("letters", "list", "--after", "nonsense")

    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert "--after" in said.err


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        (("--incident", "bbbb"), 4),
        (("--queue", "orders"), 8),
        (("--error-type", "shop.Timeout", "--queue", "orders"), 0),
        (("--reason", "rejected"), 12),
        (("--reason", "worker_crash"), 0),
        (("--kind", "llm"), 1),
        (("--kind", "message"), 11),
        (("--state", "resolved"), 0),
        (("--state", "resolved", "--state", "open", "--queue", "orders"), 8),
        (("--state", "resolved", "--state", "parked"), 0),
        (("--state", "all"), 12),
        (("--state", "parked", "--state", "all"), 12),
        (("--text", '"ID": 12'), 1),
        (("--since", (AT + timedelta(hours=10)).isoformat()), 3),
        (("--until", "2026-01-02T05:04:05Z"), 1),
        (("--since", "1h"), 0),
        (("--user", "nobody"), 0),
    ],
    ids=str,
)
def test_the_list_is_filtered(kept: Shop, flags: tuple[str, ...], count: int) -> None:
    assert len(kept.run("letters", "list", "--json", *flags).lines) == count


def test_every_mistake_of_a_filter_has_its_line(kept: Shop) -> None:
    said = kept.run("letters", "list", "--since", "yesterday", "--until", "soon")

    assert said.status == 2
    assert [line.split(":")[1].strip() for line in said.err.splitlines()] == ["--since", "--until"]


def test_an_empty_list_says_what_was_looked_for(kept: Shop) -> None:
    assert kept.run("letters", "list", "--queue", "unused").out == "no open letters match\n"
    assert kept.run("letters", "list", "--state", "parked").out == "no parked letters match\n"
    states = ("--state", "resolved", "--state", "parked")
    assert kept.run("letters", "list", *states).out == "no resolved or parked letters match\n"


def test_a_look_at_an_absent_store_does_not_make_one(at_store: Shop) -> None:
    said = at_store.run("letters", "list")

    assert (said.status, len(said.err.splitlines())) == (4, 1)
    assert not at_store.store_file.exists()


def test_an_attempt_that_took_no_time_is_told_in_milliseconds(shop: Shop) -> None:
    attempts = tuple(Attempt(number, AT, AT + timedelta(microseconds=9 * 10**number), "E", "") for number in (0, 4))
    shop.collect(a_letter(attempts=attempts))

    said = shop.run("letters", "show", FIRST, "--reveal").out

    assert "Z, <1 ms: E" in said
    assert "Z, 90 ms: E" in said


def test_a_letter_is_shown_whole(shop: Shop) -> None:
    attempt = Attempt(1, AT, AT + timedelta(seconds=2), "shop.OutOfStock", "nothing left")
    crash = Attempt(2, AT, AT + timedelta(milliseconds=20), "Crash", "SIGKILL", crash=True, generation=1)
    letter = a_letter(
        headers=(("source", b"import"), ("raw", b"\xff\x1b[2J")),
        attempts=(attempt, crash),
        fingerprint="aaaa",
        handler="shop.charge",
        app_version="4f2c",
        user_id="user-7",
        context={"basket": [1, 2]},
        stack="Traceback\n  in charge",
        key=b"k1",
    )
    shop.collect(letter)

    said = shop.run("letters", "show", FIRST, "--reveal")

    assert said.status == 0
    assert said.lines[0] == f"letter {FIRST}: open, generation 0"
    for text in (
        *(
            "rejected",
            "shop.OutOfStock: nothing left",
            "aaaa",
            "orders",
            "shop.charge",
            "4f2c",
            "user-7",
            "[1, 2]",
            "k1",
        ),
        *("the process died: Crash: SIGKILL", "2, generation 1", "20 ms", "in charge", '"id": 1', "import"),
        "\\xff\\x1b[2J",
    ):
        assert text in said.out
    assert "\x1b" not in said.out


def test_a_letter_as_json_is_the_letter_and_what_the_store_knows(kept: Shop) -> None:
    kept.run("letters", "note", named(1), "seen")

    (fact,) = facts(kept.run("letters", "show", named(1), "--json"))

    assert (fact["letter_id"], fact["payload"], fact["state"], fact["note"]) == (named(1), '{"id": 1}', "open", "seen")
    assert (fact["edits"], fact["outcomes"], fact["redrive_ids"]) == ([], [], [])


def test_a_letter_is_named_by_the_beginning_of_its_id(kept: Shop) -> None:
    assert kept.run("letters", "show", "c000").lines[0] == f"letter {named(12)}: open, generation 0"


def test_a_beginning_that_names_several_letters_or_none_is_told(shop: Shop) -> None:
    shop.collect(a_letter(1, letter_id="abcd1".ljust(32, "0")), a_letter(2, letter_id="abcd2".ljust(32, "0")))

    several, none = shop.run("letters", "show", "abcd"), shop.run("letters", "show", "ffff")

    assert (several.status, none.status) == (2, 4)
    assert "more than one letter begins so" in several.err
    assert none.err == "redrive: no letter 'ffff' is in the store\n"


def test_stats_count_by_state_reason_error_and_queue(kept: Shop) -> None:
    kept.run("letters", "discard", named(1))

    said = kept.run("letters", "stats")
    (fact,) = facts(kept.run("letters", "stats", "--queue", "mail", "--json"))

    assert said.lines[0] == "12 letters"
    rows = {line.split()[0]: line.split()[1] for line in said.lines if line.startswith("  ")}
    assert (rows["open"], rows["discarded"], rows["shop.OutOfStock"], rows["mail"]) == ("11", "1", "8", "4")
    assert (fact["total"], fact["by_error_type"]) == (4, {"shop.Timeout": 4})


def test_letters_are_discarded_by_id_at_once(kept: Shop) -> None:
    said = kept.run("letters", "discard", named(1), named(2), "--why", "duplicates")

    assert (said.status, said.out) == (0, "discarded 2 letters\n")
    assert kept.states() == {"open": 10, "discarded": 2}
    assert "why: duplicates" in kept.run("audit", "list").out


def test_many_letters_are_first_shown_and_discarded_only_with_yes(kept: Shop) -> None:
    shown = kept.run("letters", "discard", "--incident", "bbbb")
    untouched = kept.states()
    acted = kept.run("letters", "discard", "--incident", "bbbb", "--yes")

    assert shown.status == 0
    assert shown.lines[0] == "would discard 4 letters (fingerprint=bbbb, state=open|parked); add --yes to do it"
    assert untouched == {"open": 12}
    assert (acted.status, acted.out) == (0, "discarded 4 letters\n")
    assert kept.states() == {"open": 8, "discarded": 4}


def test_a_dry_run_as_json_says_so(kept: Shop) -> None:
    (fact,) = facts(kept.run("letters", "discard", "--all", "--json"))

    assert (fact["dry_run"], fact["count"], fact["by_queue"]) == (True, 12, {"orders": 8, "mail": 4})


@pytest.mark.parametrize(
    "tokens",
    [(), ("--yes",), ("0" * 32, "--all"), ("--all", "--queue", "orders")],
    ids=["nothing", "yes", "id", "filter"],
)
@pytest.mark.parametrize("verb", ["discard", "redrive"])
def test_letters_a_filter_or_all_must_be_said_and_only_one_of_them(
    kept: Shop, verb: str, tokens: tuple[str, ...]
) -> None:
    said = kept.run("letters", verb, *tokens)

    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert "--all" in said.err
    assert kept.states() == {"open": 12}


def test_a_letter_that_is_settled_cannot_be_discarded_again(kept: Shop) -> None:
    kept.run("letters", "discard", named(1))

    said = kept.run("letters", "discard", named(1))

    assert (said.status, said.out) == (1, "discarded 0 letters; 1 discarded already\n")


def test_old_letters_are_purged_only_with_yes_and_do_not_come_back(kept: Shop) -> None:
    old = a_letter(99, letter_id=named(99), failed_at=datetime.now(UTC))
    kept.collect(old)

    shown = kept.run("letters", "purge", "--older-than", "1d")
    untouched = kept.states()
    acted = kept.run("letters", "purge", "--older-than", "1d", "--yes")
    kept.collect(a_letter(1, letter_id=named(1), failed_at=AT))

    assert (shown.status, shown.out) == (0, "would purge 12 letters; add --yes to do it\n")
    assert untouched == {"open": 13}
    assert (acted.status, acted.out) == (0, "purged 12 letters\n")
    assert kept.states() == {"open": 1}


def test_a_purge_may_be_about_one_state(kept: Shop) -> None:
    kept.run("letters", "discard", named(1))

    said = kept.run("letters", "purge", "--older-than", "1d", "--state", "discarded", "--yes")

    assert said.out == "purged 1 letter\n"
    assert kept.states() == {"open": 11}


@pytest.mark.parametrize("tokens", [(), ("--older-than", "old")])
def test_a_purge_needs_an_age(kept: Shop, tokens: tuple[str, ...]) -> None:
    said = kept.run("letters", "purge", "--yes", *tokens)

    assert said.status == 2
    assert "--older-than" in said.err
    assert kept.states() == {"open": 12}


def test_letters_go_out_as_json_lines_and_come_in_once(kept: Shop, tmp_path: Path) -> None:
    file = tmp_path / "letters.jsonl"
    kept.run("letters", "export", "--incident", "aaaa", "--to", str(file))
    elsewhere = ("--store", f"sqlite:///{tmp_path / 'other.db'}")

    first = kept.run("letters", "import", str(file), *elsewhere)
    again = kept.run("letters", "import", str(file), *elsewhere)

    assert len(file.read_text().splitlines()) == 8
    assert first.out == "imported 8 new, 0 reopened, 0 known already\n"
    assert again.out == "imported 0 new, 0 reopened, 8 known already\n"
    done = [one for one in facts(kept.run("audit", "--json", *elsewhere)) if not one["letter_id"]]
    assert [(one["verb"], one["count"], one["detail"]["new"], one["detail"]["known"]) for one in done] == [
        ("letters.import", 8, 0, 8),
        ("letters.import", 8, 8, 0),
    ]
    assert done[0]["selection"] == f"lines 1 to 8 of {file}"
    there = kept.run("letters", "show", named(3), "--json", *elsewhere)
    here = kept.run("letters", "show", named(3), "--json")
    assert facts(there) == facts(here)


def test_a_line_that_is_no_letter_is_told_and_the_rest_come_in(kept: Shop, tmp_path: Path) -> None:
    file = tmp_path / "letters.jsonl"
    kept.run("letters", "export", named(1), "--to", str(file))
    file.write_text(f"nonsense\n{file.read_text()}")

    said = kept.run("letters", "import", str(file), "--store", f"sqlite:///{tmp_path / 'other.db'}")

    assert said.status == 1
    assert said.err.startswith("redrive: line 1: ")
    assert said.out == "imported 1 new, 0 reopened, 0 known already, 1 refused\n"


def test_a_letter_becomes_a_test(kept: Shop) -> None:
    said = kept.run("letters", "export", named(1), "--pytest", "--app", "first:app")

    assert said.status == 0
    compile(said.out, "test_letter.py", "exec")
    assert "from first import app" in said.out


def test_the_app_of_a_test_is_guessed_from_the_handler(shop: Shop) -> None:
    shop.collect(a_letter(1, handler="shop.tasks.charge"), a_letter(2, handler=""))

    guessed = shop.run("letters", "export", FIRST, "--pytest")
    unknown = shop.run("letters", "export", f"{2:032x}", "--pytest")

    assert "from shop.tasks import app" in guessed.out
    assert (unknown.status, unknown.out) == (2, "")
    assert "--app" in unknown.err


def test_a_payload_is_compared_by_its_hash(kept: Shop, tmp_path: Path) -> None:
    same, other = tmp_path / "same", tmp_path / "other"
    same.write_bytes(b'{"id": 1}')
    other.write_bytes(b'{"id": 1}\n')

    equal = kept.run("letters", "verify", named(1), str(same))
    different = kept.run("letters", "verify", named(1), str(other), "--json")
    absent = kept.run("letters", "verify", named(1), str(tmp_path / "absent"))

    assert (equal.status, equal.out) == (0, f"the same: {payload_hash(same.read_bytes())}\n")
    assert (different.status, facts(different)[0]["same"]) == (1, False)
    assert (absent.status, len(absent.err.splitlines())) == (2, 1)


def test_an_edit_changes_what_is_sent_and_keeps_the_original(kept: Shop, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.write_bytes(b'{"id": 100}')

    said = kept.run("letters", "edit", named(1), "--body", f"@{new}", "--header", "source=fixed")

    assert said.status == 0
    assert said.lines[0].startswith(f"edit 1 of {named(1)} is kept")
    for text in ('-  "id": 1', '+  "id": 100', "+source: fixed"):
        assert text in said.out
    (fact,) = facts(kept.run("letters", "show", named(1), "--json"))
    assert fact["payload"] == '{"id": 1}'
    assert kept.run("letters", "verify", named(1), str(new)).out.startswith("not the original but its edit 1")


def test_an_edit_without_flags_opens_the_editor(kept: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/1/7/" "$1"\necho >> "$1"\n')
    editor.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(editor))

    assert kept.run("letters", "edit", named(1)).status == 0

    (edit,) = kept.ask_store(lambda store: store.get(named(1))).edits
    assert edit.body.strip() == b'{"id": 7}'


def test_an_editor_that_changes_nothing_or_fails_leaves_the_letter_alone(
    kept: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "true")
    unchanged = kept.run("letters", "edit", named(1))
    monkeypatch.setenv("EDITOR", "false")
    failed = kept.run("letters", "edit", named(1))
    monkeypatch.delenv("EDITOR")
    unnamed = kept.run("letters", "edit", named(1))

    assert (unchanged.status, unchanged.out) == (1, "nothing was changed\n")
    assert (failed.status, unnamed.status) == (1, 2)
    assert kept.ask_store(lambda store: store.get(named(1))).edits in ((), [])


def test_a_header_of_ours_cannot_be_set(kept: Shop) -> None:
    said = kept.run("letters", "edit", named(1), "--header", "rd-letter=x")

    assert said.status == 1
    assert "rd-letter" in said.err


def test_a_header_can_be_taken_away(shop: Shop) -> None:
    shop.collect(a_letter(headers=(("a", b"1"), ("b", b"2"))))

    shop.run("letters", "edit", FIRST, "--drop-header", "a", "--header", "b=3")

    assert shop.ask_store(lambda store: store.get(FIRST)).edits[-1].headers == (("b", b"3"),)


APP = """
import redrive

app = redrive.App("memory://", name="shop")

@app.consumer("orders")
async def charge(order: dict) -> str:
    if order["id"] == 2:
        raise KeyError("customer")
    return "charged"
"""


def test_the_current_handler_is_tried_here_and_nothing_changes(kept: Shop, tmp_path: Path) -> None:
    (tmp_path / "tried_shop.py").write_text(APP)

    fine = kept.run("letters", "try", named(1), "tried_shop:app")
    broken = kept.run("letters", "try", named(2), "tried_shop:app")
    elsewhere = kept.run("letters", "try", named(9), "tried_shop:app")

    assert (fine.status, fine.out) == (0, "it succeeded, returning 'charged'; it would be acked\n")
    assert broken.status == 1
    assert broken.out.startswith("it failed in another way: KeyError; in a worker: ")
    assert 'raise KeyError("customer")' in broken.err
    assert (elsewhere.status, "'mail'" in elsewhere.err) == (2, True)
    assert kept.states() == {"open": 12}


def test_the_reasons_are_those_of_letters(kept: Shop) -> None:
    for reason in Reason:
        assert kept.run("letters", "list", "--reason", reason.value).status == 0
