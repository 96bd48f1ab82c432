import json

from tests.unit.cli.conftest import Shop, a_letter


def test_collecting_once_moves_what_is_there_into_the_store(shop: Shop) -> None:
    shop.subscribe("orders")
    shop.bury(*(a_letter(number) for number in range(1, 6)), a_letter(9, queue="mail"))

    said = shop.run("collect", "--once")

    assert (said.status, said.out) == (0, "collected 6 new, 0 reopened, 0 resolved, 0 known already\n")
    assert shop.states() == {"open": 6}
    assert shop.entry_ids() == []


def test_collecting_again_finds_nothing_new(shop: Shop) -> None:
    shop.bury(a_letter())
    shop.run("collect", "--once")

    assert json.loads(shop.run("collect", "--once", "--json").out) == {
        "new": 0,
        "reopened": 0,
        "resolved": 0,
        "known": 0,
        "incidents": 0,
    }


def test_collecting_may_leave_the_entries_where_they_are(shop: Shop) -> None:
    shop.bury(*(a_letter(number) for number in range(1, 4)))

    shop.run("collect", "--once", "--keep")

    assert shop.states() == {"open": 3}
    assert len(shop.entry_ids()) == 3


def test_collecting_may_be_about_one_queue(shop: Shop) -> None:
    shop.bury(a_letter(1), a_letter(2, queue="mail"))

    shop.run("collect", "--once", "--queue", "mail")

    assert json.loads(shop.run("letters", "list", "--json").out)["queue"] == "mail"


def test_one_file_for_broker_and_store_is_refused(shop: Shop) -> None:
    shop.bury(a_letter())

    said = shop.run("collect", "--once", "--store", shop.url)

    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert "another file than the broker's" in said.err
    assert len(shop.entry_ids()) == 1


def test_collecting_once_from_nowhere_makes_nothing(shop: Shop) -> None:
    said = shop.run("collect", "--once")

    assert said.status == 4
    assert not shop.file.exists()
    assert not shop.store_file.exists()
