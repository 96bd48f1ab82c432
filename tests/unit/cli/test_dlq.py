import json

import pytest

from redrive.brokers.sqlite.dead_letters import SqliteDeadLetters
from redrive.core.errors import LetterNotFound
from redrive.core.place import DeadLetterPlace
from redrive.core.ports import Broker
from tests.unit.cli.conftest import Shop, a_letter

WHERE = ("--queue", "orders")


@pytest.fixture
def dead(shop: Shop) -> Shop:
    shop.subscribe("orders")
    shop.bury(*(a_letter(number) for number in range(1, 13)))
    return shop


def length(shop: Shop) -> int:
    return int(shop.run("dlq", "length", *WHERE).out)


def waiting(shop: Shop) -> int:
    rows = [json.loads(line) for line in shop.run("queues", "--json").lines]
    return next(int(row["waiting"]) for row in rows if (row["queue"], row["group"]) == ("orders", "shop"))


def test_peek_shows_the_ten_oldest_with_their_reason_and_error(dead: Shop) -> None:
    said = dead.run("dlq", "peek", *WHERE)

    assert len(said.lines) == 11
    row = said.lines[1]
    for text in ("shop", "rejected", "shop.OutOfStock: nothing left", '{"id": 1}'):
        assert text in row


def test_peek_goes_on_from_an_entry(dead: Shop) -> None:
    third = dead.entry_ids()[2]

    said = dead.run("dlq", "peek", *WHERE, "--count", "2", "--start", third, "--json")

    assert [json.loads(line)["entry_id"] for line in said.lines] == dead.entry_ids()[2:4]


def test_peek_as_json_is_the_whole_letter(dead: Shop) -> None:
    line = dead.run("dlq", "peek", *WHERE, "--count", "1", "--json").lines[0]

    letter = json.loads(line)
    assert letter["letter_id"] == f"{1:032x}"
    assert letter["payload"] == '{"id": 1}'
    assert (letter["reason"], letter["error_message"]) == ("rejected", "nothing left")


def test_a_payload_that_would_steer_the_terminal_is_shown_escaped(shop: Shop) -> None:
    shop.bury(a_letter(payload=b"\x1b[2J\xff", error_message="\x1b[31mred"))

    for said in (shop.run("dlq", "peek", *WHERE), shop.run("dlq", "peek", *WHERE, "--json")):
        assert said.status == 0
        assert "\x1b" not in said.out
    assert "\\x1b[2J\\xff" in shop.run("dlq", "peek", *WHERE).out


def test_length_counts_and_an_unused_dlq_has_none(dead: Shop) -> None:
    dead.subscribe("unused")

    assert length(dead) == 12
    assert dead.run("dlq", "length", "--queue", "unused").out == "0\n"
    assert json.loads(dead.run("dlq", "length", *WHERE, "--json").out)["length"] == 12


def test_letters_are_redriven_by_their_entries(dead: Shop) -> None:
    first, second, *_ = dead.entry_ids()

    said = dead.run("dlq", "redrive", first, second, *WHERE)

    assert (said.status, said.out) == (0, "redriven 2 of 2 letters of orders.dlq\n")
    assert (length(dead), waiting(dead)) == (10, 2)


def test_a_redriven_letter_tells_its_new_message_as_json(dead: Shop) -> None:
    (line,) = dead.run("dlq", "redrive", dead.entry_ids()[0], *WHERE, "--json").lines

    fact = json.loads(line)
    assert fact["redriven"] is True
    assert fact["message_id"]


def test_an_entry_that_is_gone_is_told_and_the_rest_are_redriven(dead: Shop) -> None:
    first, second, *_ = dead.entry_ids()
    dead.run("dlq", "remove", first, *WHERE)

    said = dead.run("dlq", "redrive", first, second, *WHERE)

    assert said.status == 4
    assert said.err == f"redrive: no entry '{first}' in 'orders.dlq'\n"
    assert said.out == "redriven 1 of 2 letters of orders.dlq\n"


@pytest.mark.parametrize(("verb", "done"), [("redrive", "redriven"), ("remove", "removed")])
def test_all_is_first_shown_and_done_only_with_yes(dead: Shop, verb: str, done: str) -> None:
    shown = dead.run("dlq", verb, "--all", *WHERE)
    untouched = length(dead)
    acted = dead.run("dlq", verb, "--all", "--yes", *WHERE)

    assert (shown.status, shown.out) == (0, f"would {verb} 12 letters of orders.dlq; add --yes to do it\n")
    assert untouched == 12
    assert (acted.status, acted.out) == (0, f"{done} 12 of 12 letters of orders.dlq\n")
    assert (length(dead), waiting(dead)) == (0, 12 if verb == "redrive" else 0)


def test_all_goes_through_more_letters_than_one_page(shop: Shop) -> None:
    shop.bury(*(a_letter(number) for number in range(450)))

    said = shop.run("dlq", "remove", "--all", "--yes", *WHERE)

    assert said.out == "removed 450 of 450 letters of orders.dlq\n"


@pytest.mark.parametrize("tokens", [(), ("7", "--all")], ids=["neither", "both"])
def test_entries_or_all_must_be_said_and_not_both(dead: Shop, tokens: tuple[str, ...]) -> None:
    said = dead.run("dlq", "remove", *tokens, *WHERE)

    assert said.status == 2
    assert "--all" in said.err
    assert length(dead) == 12


def test_a_dlq_of_another_name_can_be_looked_into(shop: Shop) -> None:
    shop.subscribe("orders")

    said = shop.run("dlq", "length", *WHERE, "--dlq", "graveyard", "--json")

    assert json.loads(said.out) == {"queue": "orders", "dlq": "graveyard", "length": 0}


def test_an_empty_dlq_says_so(shop: Shop) -> None:
    shop.subscribe("orders")

    assert shop.run("dlq", "peek", *WHERE).out == "orders.dlq is empty\n"
    assert shop.run("dlq", "remove", "--all", *WHERE).out == "orders.dlq has no letters of orders\n"


@pytest.mark.parametrize("words", [("peek",), ("length",), ("redrive", "--all"), ("remove", "x-1")])
def test_a_queue_that_is_not_there_is_told(dead: Shop, words: tuple[str, ...]) -> None:
    said = dead.run("dlq", *words, "--queue", "ordres")

    assert (said.status, said.out, said.err) == (4, "", "redrive: no such queue: 'ordres'\n")


def test_a_dlq_whose_queue_is_gone_is_still_there(shop: Shop) -> None:
    shop.bury(a_letter())

    assert length(shop) == 1


def test_peek_says_that_the_entry_to_start_with_is_not_there(dead: Shop) -> None:
    said = dead.run("dlq", "peek", *WHERE, "--start", "zzz")

    assert (said.status, said.out, said.err) == (4, "", "redrive: no entry 'zzz' in orders.dlq\n")


@pytest.mark.parametrize("verb", ["redrive", "remove"])
def test_all_leaves_the_letters_of_other_queues_in_a_shared_dlq(shop: Shop, verb: str) -> None:
    async def share(broker: Broker) -> None:
        letters = broker.dead_letters("orders", place=DeadLetterPlace(name="all.dead"))
        for number, queue in enumerate(["orders", "mail", "orders", "mail", "mail"]):
            await letters.send(a_letter(number, queue=queue))

    shop.ask(share)
    shared = ("--dlq", "all.dead")
    shown = shop.run("dlq", verb, "--all", *WHERE, *shared)
    shop.run("dlq", verb, "--all", "--yes", *WHERE, *shared)
    left = shop.run("dlq", "peek", *WHERE, *shared, "--json")

    assert shown.out == f"would {verb} 2 letters of all.dead; add --yes to do it\n"
    assert [json.loads(line)["queue"] for line in left.lines] == ["mail"] * 3


def test_with_all_the_letters_that_have_gone_are_counted_not_listed(
    dead: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_: SqliteDeadLetters, entry_id: str) -> None:
        raise LetterNotFound(entry_id)

    monkeypatch.setattr(SqliteDeadLetters, "remove", gone)

    said = dead.run("dlq", "remove", "--all", "--yes", *WHERE)

    assert said.status == 4
    assert said.err == "redrive: 12 letters of orders.dlq had gone already\n"
