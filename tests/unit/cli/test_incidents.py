import json
from datetime import UTC, datetime, timedelta

import pytest

from redrive.cli.incidents import trend
from tests.unit.cli.conftest import AT, Shop, a_letter


@pytest.fixture
def shop(either: Shop) -> Shop:
    return either


@pytest.fixture
def kept(shop: Shop) -> Shop:
    now = datetime.now(UTC)
    shop.collect(
        *(a_letter(number, fingerprint="aaaa", failed_at=now - timedelta(hours=2)) for number in range(1, 8)),
        *(
            a_letter(number, fingerprint="bbbb", failed_at=now, queue="mail", error_type="shop.Timeout")
            for number in range(8, 12)
        ),
    )
    return shop


def test_the_list_shows_what_fails_the_latest_first(kept: Shop) -> None:
    said = kept.run("incidents")

    assert said.lines[0].split() == ["incident", "open", "total", "last", "queues", "state", "error"]
    assert [line.split()[:3] for line in said.lines[1:]] == [["bbbb", "4", "4"], ["aaaa", "7", "7"]]
    assert "Timeout: nothing left" in said.lines[1]


def test_the_list_goes_on_behind_a_page(kept: Shop) -> None:
    first = kept.run("incidents", "list", "--count", "1", "--json")
    cursor = first.err.split("--after ")[1].strip()
    second = kept.run("incidents", "list", "--count", "1", "--json", "--after", cursor)

    assert [json.loads(said.out)["incident_id"] for said in (first, second)] == ["bbbb", "aaaa"]


def test_an_incident_is_shown_with_its_trend_and_what_its_letters_have_in_common(kept: Shop) -> None:
    said = kept.run("incidents", "show", "aaaa")

    assert said.lines[0] == "incident aaaa: open, 7 open of 7"
    for text in ("shop.OutOfStock: nothing left", "in common, of the latest 7", '"id": 7', "█"):
        assert text in said.out
    assert "redrive letters redrive --incident aaaa --canary 1,5,25" in said.out


def test_an_incident_as_json_is_one_line(kept: Shop) -> None:
    fact = json.loads(kept.run("incidents", "show", "bbbb", "--json").out)

    assert (fact["open"], fact["queues"], len(fact["latest"])) == (4, ["mail"], 4)
    assert {"field": "queue", "value": "mail", "count": 4, "of": 4} in fact["alike"]
    assert sum(number for _, number in fact["hours"]) == 4


def test_an_incident_that_is_not_there_is_told(kept: Shop) -> None:
    for verb in (("show", "cccc"), ("note", "cccc", "x"), ("mute", "cccc")):
        said = kept.run("incidents", *verb)
        assert (said.status, len(said.err.splitlines())) == (4, 1)


def test_a_note_and_an_assignee_are_seen_in_the_list(kept: Shop) -> None:
    noted = kept.run("incidents", "note", "aaaa", "the bank changed its API")
    assigned = kept.run("incidents", "assign", "aaaa", "kim")

    assert (noted.out, assigned.out) == ("noted on incident aaaa\n", "assigned incident aaaa to kim\n")
    row = kept.run("incidents").lines[2]
    assert "kim" in row
    assert "the bank changed its API" in row


def test_a_muted_incident_leaves_the_list_until_it_is_unmuted(kept: Shop) -> None:
    kept.run("incidents", "mute", "aaaa")
    muted = [json.loads(line)["incident_id"] for line in kept.run("incidents", "--json").lines]
    there = json.loads(kept.run("incidents", "list", "--state", "muted", "--json").out)
    kept.run("incidents", "mute", "aaaa", "--off")

    assert muted == ["bbbb"]
    assert there["incident_id"] == "aaaa"
    assert len(kept.run("incidents", "--json").lines) == 2


def test_a_mute_may_have_an_end_which_is_kept_with_it(kept: Shop) -> None:
    before = datetime.now(UTC)
    said = kept.run("incidents", "mute", "aaaa", "--ends-in", "8h")
    muted = json.loads(kept.run("incidents", "list", "--state", "muted", "--json").out)

    assert (said.status, said.out) == (0, "incident aaaa is muted for 8h\n")
    ends_in = datetime.fromisoformat(muted["muted_until"]) - before
    assert timedelta(hours=8) <= ends_in < timedelta(hours=9)
    for wrong in (("--ends-in", "soon"), ("--ends-in", "0s"), ("--ends-in", "8h", "--off")):
        assert kept.run("incidents", "mute", "aaaa", *wrong).status == 2


def test_a_resolved_incident_is_opened_by_a_new_letter(kept: Shop) -> None:
    kept.run("incidents", "resolve", "bbbb")
    closed = len(kept.run("incidents", "--json").lines)
    kept.collect(a_letter(99, fingerprint="bbbb", failed_at=AT))

    assert closed == 1
    assert len(kept.run("incidents", "--json").lines) == 2


def test_an_empty_list_says_so(shop: Shop) -> None:
    shop.states()

    assert shop.run("incidents").out == "no open incidents\n"
    assert shop.run("incidents", "list", "--state", "all").out == "no incidents\n"


def test_the_trend_has_a_bar_for_every_hour_of_a_day() -> None:
    hour = AT.replace(minute=0, second=0)

    assert trend([(hour, 8), (hour - timedelta(hours=1), 1), (hour - timedelta(days=3), 50)], now=AT) == "·" * 22 + "▁█"
    assert trend([], now=AT) == ""
