import json
import sqlite3

import pytest

from tests.unit.cli.conftest import Shop, a_letter


@pytest.fixture
def shop(either: Shop) -> Shop:
    return either


@pytest.fixture
def kept(shop: Shop) -> Shop:
    shop.collect(*(a_letter(number) for number in range(1, 4)))
    shop.run("letters", "discard", "--all", "--yes", "--why", "a drill")
    shop.run("letters", "note", f"{1:032x}", "seen")
    return shop


def test_what_was_done_is_shown_the_latest_first(kept: Shop) -> None:
    said = kept.run("audit")

    assert said.lines[0].split() == ["at", "who", "did", "letters", "which"]
    assert "letters.note" in said.lines[1]
    operation = next(line for line in said.lines if "all letters" in line)
    assert "letters.discard" in operation
    assert "why: a drill" in operation
    assert sum("letters.discard" in line for line in said.lines) == 4


def test_the_audit_of_one_letter_is_its_own(kept: Shop) -> None:
    said = kept.run("audit", "list", "--letter", f"{2:032x}", "--json")

    records = [json.loads(line) for line in said.lines]
    assert [record["verb"] for record in records] == ["letters.discard"]
    assert records[0]["letter_id"] == f"{2:032x}"


def test_the_audit_goes_on_behind_a_page(kept: Shop) -> None:
    first = kept.run("audit", "list", "--count", "2", "--json")
    cursor = first.err.split("--after ")[1].strip()
    rest = kept.run("audit", "list", "--json", "--after", cursor)

    seqs = [json.loads(line)["seq"] for line in (*first.lines, *rest.lines)]
    assert seqs == sorted(seqs, reverse=True)
    assert seqs[-1] == 1


def test_a_chain_that_holds_is_said_to_hold(kept: Shop) -> None:
    said = kept.run("audit", "verify", "--json")

    assert (said.status, json.loads(said.out)) == (0, {"holds": True})


def test_a_changed_record_is_found(kept: Shop) -> None:
    with sqlite3.connect(kept.store_file) as connection:
        connection.execute("UPDATE audit SET who = 'nobody' WHERE seq = 2")
    connection.close()

    said = kept.run("audit", "verify")

    assert said.status == 1
    assert said.out.startswith("the chain breaks at record 2")


def test_nothing_done_is_said_so(shop: Shop) -> None:
    shop.collect(a_letter())

    assert shop.run("audit").out == "nothing was done yet\n"
