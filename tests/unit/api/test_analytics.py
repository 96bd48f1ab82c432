import pytest

from tests.unit.api.stage import Stage


async def test_deaths_are_told_by_hour_and_dimension() -> None:
    async with Stage() as stage:
        await stage.collect(2, error_type="KeyError")
        await stage.collect(1, prefix="other", error_type="OSError", queue="mails")
        stage.clock.advance("1m")

        by_type = (await stage.ask("/analytics")).json()
        by_queue = (await stage.ask("/analytics?by=queue&queue=mails&top=1")).json()

        assert (by_type["by"], by_type["total"]) == ("error_type", 3)
        assert by_type["totals"] == {"KeyError": 2, "OSError": 1}
        assert [(hour["total"], hour["others"]) for hour in by_type["hours"]] == [(3, 0)]
        assert by_queue["totals"] == {"mails": 1}


@pytest.mark.parametrize("by", ["error_type", "error_code"])
async def test_what_deaths_are_of_is_masked_and_what_looks_the_same_then_is_counted_together(by: str) -> None:
    async with Stage() as stage:
        await stage.collect(2, **{by: "NoUser:ann@example.com"})
        await stage.collect(1, prefix="other", **{by: "NoUser:kim@example.com"})
        stage.clock.advance("1m")

        found = (await stage.ask(f"/analytics?by={by}")).json()

        assert (found["total"], found["totals"]) == (3, {"NoUser:***": 3})
        assert [hour["counts"] for hour in found["hours"]] == [{"NoUser:***": 3}]


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("since=2030-01-01T00:00:00Z&until=2029-01-01T00:00:00Z", 400, "expected an instant before"),
        ("since=2029-01-01T00:00:00Z", 400, "at most 31 days"),
        ("until=0001-01-01T00:00:00Z", 422, "from 1970 on"),
        ("since=0001-01-01T00:00:00%2B14:00", 422, "from 1970 on"),
        ("since=2030-01-01T00:00:00", 422, "timezone"),
        ("since=yesterday", 422, "since"),
        ("since=0.5", 422, "expected an instant"),
        ("since=1893456000", 422, "expected an instant"),
        ("by=user_id", 422, "by"),
        ("top=101", 422, "top"),
        ("queue=", 422, "queue"),
    ],
)
async def test_a_time_or_dimension_that_makes_no_sense_is_refused(query: str, status: int, said: str) -> None:
    async with Stage() as stage:
        answer = await stage.ask(f"/analytics?{query}")

        assert (answer.status_code, said in answer.text) == (status, True), answer.text
