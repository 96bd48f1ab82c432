from datetime import datetime, timedelta, timezone

from redrive.core.audit import Act, chained
from redrive.stores.witness import Link, Touched, records_of

AT = datetime(2030, 1, 31, 12, microsecond=500, tzinfo=timezone(timedelta(hours=2)))
ACT = Act(
    who="Jürgen",
    verb="letters.discard",
    at=AT,
    operation_id="0123456789ab",
    selection='queue = "orders"',
    detail={"why": "old"},
)
TOUCHED = [Touched("a", "b1", "b2", {"state": ["open", "discarded"], "generation": 1}), Touched("b\ud800")]


def test_hashes_are_the_ones_that_stores_have_kept_since_the_first_version() -> None:
    records = [*records_of(ACT, TOUCHED, behind=Link(6, "f" * 64), count=2)]

    assert [record.seq for record in records] == [7, 8, 9]
    assert [record.hash for record in records] == [
        "9f26f38f10e503811e9da35a26cb9cf05f9dbe1696db1285a12c6d4fc9fb3f84",
        "345f8e1aa0fd6b99352273c9e72751125b4f69aec3b009391e094008ec1c152d",
        "ea5989350c39f978e562016ab04e573c130139c58b4c40a7436643a1c6d06e65",
    ]


def test_each_record_follows_from_the_one_before() -> None:
    records = [*records_of(ACT, TOUCHED, behind=Link(6, "f" * 64), count=None)]

    assert [record.letter_id for record in records] == ["a", "b\ud800"]
    assert [record.previous_hash for record in records] == ["f" * 64, records[0].hash]
    assert [record.hash for record in records] == [chained(one, previous_hash=one.previous_hash) for one in records]
