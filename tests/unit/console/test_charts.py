from datetime import UTC, datetime, timedelta

from redrive.console.charts import Bar, bars, shares, spark
from tests.unit.console.seen import read

AT = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_a_chart_with_links_is_a_group_of_them_and_one_without_an_image() -> None:
    found = [Bar(AT + timedelta(hours=hour), hour, f"/letters?hour={hour}") for hour in range(3)]

    linked = read(bars(found, "Deaths per hour"))
    plain = read(bars([bar._replace(url="") for bar in found], "Deaths per hour"))

    assert [href for _, href in linked.links] == ["/letters?hour=1", "/letters?hour=2"]  # nothing leads to nothing
    assert [one.root.all("svg")[0].attributes["role"] for one in (linked, plain)] == ["group", "img"]


def test_a_small_chart_draws_what_there_is() -> None:
    (svg,) = read(spark([0, 1, 0, 4], "four hours")).root.all("svg")

    (path,) = svg.all("path")
    assert (svg.attributes["aria-label"], path.attributes["d"].count("M")) == ("four hours", 2)
    assert read(spark([], "nothing")).root.all("path")[0].attributes["d"] == ""


def test_the_parts_of_a_whole_fill_a_bar_and_are_said_in_words() -> None:
    (svg,) = read(shares({"succeeded": 3, "failed again": 0, "to go": 1_000}, "<b>Step 1</b>")).root.all("svg")

    assert svg.attributes["aria-label"] == "<b>Step 1</b>: 3 succeeded, 1,000 to go"
    assert [one.attributes["data-part"] for one in svg.all("rect")] == ["succeeded", "to go"]
    assert read(shares({}, "Nothing")).root.all("svg")[0].attributes["aria-label"] == "Nothing: nothing"
