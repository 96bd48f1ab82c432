import pytest

from redrive.core.errors import LetterNotFound
from redrive.core.likeness import Likeness
from redrive.triage import audit, incidents
from tests.unit.triage.bench import Bench


async def the_incident(bench: Bench) -> str:
    (row,) = (await incidents.find(bench.desk)).rows
    return row.incident_id


async def test_an_incident_is_shown_with_what_its_letters_have_in_common() -> None:
    bench = Bench()
    await bench.collect(12, tenant_id="acme")

    shown = await incidents.show(bench.desk, await the_incident(bench))

    assert (shown.incident.open, shown.incident.total) == (12, 12)
    assert Likeness("tenant_id", "acme", 12, 12) in shown.alike
    assert len(shown.latest) == 12
    assert shown.sample is not None
    assert shown.sample.letter_id == "letter-11"


async def test_the_letters_of_an_incident_can_be_asked_for() -> None:
    bench = Bench()
    await bench.collect(2)
    await bench.collect(2, prefix="other", fingerprint="other")

    found = [row.incident_id for row in (await incidents.find(bench.desk)).rows]
    ids = {one: await bench.ids(await incidents.query_of(bench.desk, one)) for one in found}

    assert sorted(map(sorted, ids.values())) == [["letter-0", "letter-1"], ["other-0", "other-1"]]


async def test_an_incident_is_noted_assigned_muted_and_resolved_in_somebodys_name() -> None:
    bench = Bench()
    await bench.collect(1)
    name = await the_incident(bench)

    await incidents.note(bench.desk, name, "since the rollout")
    await incidents.assign(bench.desk, name, "kim")
    assert (await incidents.mute(bench.desk, name)).state == "muted"
    assert (await incidents.resolve(bench.desk, name)).state == "resolved"
    row = await incidents.reopen(bench.desk, name)

    assert (row.state, row.note, row.assignee) == ("open", "since the rollout", "kim")
    verbs = [record.verb for record in reversed((await audit.find(bench.desk)).rows) if not record.letter_id]
    assert verbs == [f"incidents.{verb}" for verb in ("note", "assign", "mute", "resolve", "reopen")]


async def test_an_incident_that_is_not_there_is_not_found() -> None:
    with pytest.raises(LetterNotFound):
        await incidents.show(Bench().desk, "nothing")


async def test_the_last_day_of_every_incident_of_a_page_is_told_hour_by_hour() -> None:
    bench = Bench()
    await bench.collect(2, prefix="old")
    bench.clock.advance("3h")
    await bench.collect(5)
    await bench.collect(1, prefix="other", fingerprint="other")
    rows = (await incidents.find(bench.desk)).rows

    found = await incidents.last_day(bench.desk, rows)

    assert found["0123456789abcdef"] == [*([0] * 20), 2, 0, 0, 5]
    assert found["other"] == [*([0] * 23), 1]


async def test_of_very_large_letters_only_a_few_are_read_to_see_what_they_have_in_common() -> None:
    bench = Bench()
    await bench.collect(12, payload=b"x" * 600_000, tenant_id="acme")

    shown = await incidents.show(bench.desk, await the_incident(bench))

    assert Likeness("tenant_id", "acme", 4, 4) in shown.alike
    assert (shown.sample is not None, len(shown.latest)) == (True, 12)
