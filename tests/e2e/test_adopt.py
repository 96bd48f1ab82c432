"""Taking over a DLQ that others have filled, on Redis."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serving import Shop, die, until
from tests.servers.redis import ask

EVENT = json.dumps(
    {
        "original_event": {"id": "evt-1", "user_id": "u7"},
        "error_message": "no such column",
        "failed_at": "2025-01-02T03:04:05Z",
        "retry_count": 2,
        "source_topic": "payments",
    }
)


@pytest.fixture
def shop(tmp_path: Path, empty_redis: str) -> Shop:
    """Letters as the seed's consumers write them, a JSON event, and rubbish."""
    die(empty_redis, '{"id": 1}')
    ask(empty_redis, "XADD", "orders:dlq", "*", "payload", EVENT)
    ask(empty_redis, "XADD", "orders:dlq", "*", "colour", "red")
    return Shop(tmp_path, REDRIVE_BROKER=empty_redis)


def length(shop: Shop, dlq: str = "orders:dlq") -> object:
    return ask(shop.env["REDRIVE_BROKER"], "XLEN", dlq)


def stored(shop: Shop) -> dict[str, str]:
    return {letter["error_type"]: letter["queue"] for letter in shop.facts("letters", "list", "--state", "all")}


def test_at_first_it_only_looks(shop: Shop) -> None:
    (found,) = shop.facts("adopt", "--dlq", "orders:dlq")

    assert found == {
        "dlq": "orders:dlq",
        "dry_run": True,
        "entries": 3,
        "forms": {"foreign": 2, "bare": 1},
        "queues": {"orders": 2, "payments": 1},
        "homeless": 0,
    }
    said = shop.run("adopt", "--dlq", "orders:dlq")
    assert "orders:dlq holds 3 entries; add --yes to take it over" in said
    assert "TimeoutError" in said
    assert length(shop) == 3
    assert not (shop.folder / "letters.db").exists()


def test_letters_of_every_form_are_taken_over_and_a_second_time_finds_none(shop: Shop) -> None:
    (done,) = shop.facts("adopt", "--dlq", "orders:dlq", "--yes")
    (again,) = shop.facts("adopt", "--dlq", "orders:dlq", "--yes")

    assert (done["new"], done["known"], done["settings"]) == (3, 0, [])
    assert (again["new"], again["known"]) == (0, 0)
    assert length(shop) == 0
    assert sorted(letter["queue"] for letter in shop.facts("letters", "list")) == ["orders", "orders", "payments"]


def test_from_then_on_it_is_collected_like_any_other(shop: Shop) -> None:
    shop.run("adopt", "--dlq", "orders:dlq", "--yes")
    die(shop.env["REDRIVE_BROKER"], "new")

    (done,) = shop.facts("collect", "--once")

    assert done["new"] == 1


def test_entries_may_stay_and_are_known_the_second_time(shop: Shop) -> None:
    (done,) = shop.facts("adopt", "--dlq", "orders:dlq", "--yes", "--keep")
    (again,) = shop.facts("adopt", "--dlq", "orders:dlq", "--yes", "--keep")

    assert (done["new"], done["settings"]) == (3, ["[collect]", 'dlqs = ["orders:dlq"]', "keep = true"])
    assert (again["new"], again["known"]) == (0, 3)
    assert length(shop) == 3


@pytest.mark.parametrize(
    "table", ["", '[brokers.mail]\nurl = "{url}"\n', '[brokers.mail]\nurl = "{url}"\nqueues = ["a"]\n']
)
def test_a_service_with_the_lines_it_prints_copies_what_comes_later(shop: Shop, table: str) -> None:
    url = shop.env["REDRIVE_BROKER"]
    config = shop.folder / "redrive.toml"
    config.write_text(table.format(url=url), "utf-8")
    at = ("--broker", "mail") if table else ()
    (done,) = shop.facts("adopt", "--dlq", "orders:dlq", "--yes", "--keep", *at)
    head, *lines = done["settings"]
    before = [line for line in table.format(url=url).splitlines() if line.partition(" ")[0] not in "\n".join(lines)]
    config.write_text("\n".join([*(before or [head]), *lines]), "utf-8")
    die(url, "later")

    with shop.service(*at) as service:
        until(lambda: "later" in service.payloads(queue="orders"), what="the later letter")

    assert length(shop) == 4
    (again,) = shop.facts("adopt", "--dlq", "orders:dlq", "--yes", "--keep", *at)
    assert again["settings"] == []


@pytest.mark.parametrize("flags", [(), ("--yes",), ("--yes", "--keep"), ("--yes", "--queue", "orders")])
def test_a_dlq_that_is_not_there_is_told_and_not_begun(shop: Shop, flags: tuple[str, ...]) -> None:
    url = shop.env["REDRIVE_BROKER"]
    before = ask(url, "KEYS", "*")

    said = shop.run("adopt", "--dlq", "order:dlq", *flags, status=4)

    assert said == "redrive: no DLQ 'order:dlq' on redis, or it is empty and nobody reads it\n"
    assert ask(url, "KEYS", "*") == before
    assert not (shop.folder / "letters.db").exists()


def test_a_dlq_of_any_name_needs_the_queue_of_letters_that_do_not_say_it(shop: Shop) -> None:
    url = shop.env["REDRIVE_BROKER"]
    die(url, "legacy", dlq="graveyard")
    ask(url, "XADD", "graveyard", "*", "payload", EVENT)

    refused = shop.run("adopt", "--dlq", "graveyard", "--yes", status=2)
    assert refused == "redrive: --queue: 1 entries do not say which queue they came from; say it\n"
    assert length(shop, "graveyard") == 2

    (done,) = shop.facts("adopt", "--dlq", "graveyard", "--queue", "orders", "--yes")
    assert (done["new"], done["settings"]) == (2, ["[collect]", 'dlqs = ["graveyard=orders"]'])
    assert stored(shop) == {"TimeoutError": "orders", "unknown": "payments"}
    assert length(shop, "graveyard") == 0

    (shop.folder / "redrive.toml").write_text("\n".join(done["settings"]), "utf-8")
    die(url, "more", dlq="graveyard")
    (collected,) = shop.facts("collect", "--once")
    assert collected["new"] == 1
    (again,) = shop.facts("adopt", "--dlq", "graveyard", "--queue", "orders", "--yes")
    assert again["settings"] == []


def test_a_letter_taken_over_goes_back_as_it_was(shop: Shop) -> None:
    url = shop.env["REDRIVE_BROKER"]
    shop.run("adopt", "--dlq", "orders:dlq", "--yes")
    (letter,) = [one for one in shop.facts("letters", "list") if one["error_type"] == "TimeoutError"]

    shop.run("letters", "redrive", letter["letter_id"], "--confirm", "quiet", "--within", "0.1s")

    entries: Any = ask(url, "XRANGE", "orders", "-", "+")
    ((_, fields),) = entries
    assert dict(zip(fields[::2], fields[1::2], strict=True))["payload"] == '{"id": 1}'


def test_what_belongs_to_a_queue_of_the_settings_is_told_as_a_line_for_its_table(shop: Shop, empty_redis: str) -> None:
    (shop.folder / "redrive.toml").write_text(f'[brokers.cache]\nurl = "{empty_redis}"\nqueues = ["mail"]\n', "utf-8")

    (done,) = shop.facts("adopt", "--dlq", "orders:dlq", "--yes", "--broker", "cache")

    assert done["settings"] == ["[brokers.cache]", 'queues = ["mail", "orders"]']
    assert {letter["broker"] for letter in shop.facts("letters", "list")} == {"cache"}


def test_a_dlq_that_is_its_own_queue_is_refused(shop: Shop) -> None:
    assert "another than the DLQ itself" in shop.run("adopt", "--dlq", "orders", "--queue", "orders", status=2)
