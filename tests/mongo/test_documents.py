"""What people find in the collection, and what they may do there with their own hands."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive.core.query import Query
from redrive.core.redrive import Planned
from redrive.stores.mongo import MongoStore
from redrive.testing.conformance.store.bench import AT, OPEN, a_redrive, an_act, an_outcome, letter
from tests.mongo.conftest import OpenStore
from tests.properties.recount import check_counts
from tests.servers.mongo import client

TICKET = {"ticket_id": "t-1", "task_type": "BUILD", "priority": 3, "parameters": {"repo": "shop", "tags": ["a", "b"]}}
LATER = AT + timedelta(seconds=5)


def a_ticket(name: str = "a", *, at: datetime = LATER, **changes: Any) -> Any:
    payload = json.dumps({**TICKET, "ticket_id": f"t-{name}"}).encode()
    said: dict[str, Any] = {"dlq_published_at": AT, "collected_at": at, "retry_count": 3, "task_type": "BUILD"}
    return letter(name, payload=payload, **(said | changes))


def document_of(url: str, name: str = "letters", **where: object) -> dict[str, Any]:
    with client(url) as connected:
        found = connected.get_default_database()[name].find_one(where)
    assert found is not None
    return found


async def test_a_document_has_the_fields_of_the_message_and_says_how_it_died(
    mongodb_url: str, open_store: OpenStore
) -> None:
    await open_store(mongodb_url).collect([a_ticket()])
    document = document_of(mongodb_url, letter_id="a")

    assert {name: document[name] for name in TICKET} == {**TICKET, "ticket_id": "t-a"}
    assert document["processed_at"] == LATER
    millis = int(AT.timestamp() * 1000)
    assert (
        document["dlq_metadata"].items()
        >= {
            "original_error": "no",
            "error_type": "ValueError",
            "retry_count": 3,
            "last_failure_timestamp": millis,
            "dlq_published_at": millis,
            "reason": "attempts_exhausted",
            "queue": "orders",
        }.items()
    )
    assert document["redrive"]["state"] == "open"


@pytest.mark.parametrize(
    ("payload", "kept"),
    [
        (b'{"_id": 7, "letter_id": "x", "processed_at": 1, "dlq_metadata": 2, "redrive": 3, "mine": 4}', {"mine": 4}),
        (
            b'{"a.b": 1, "$set": 2, "": 3, "nul\\u0000": 4, "x": {"d.d": 1}, "fine": {"x": [null, true]}, "y": [[1]]}',
            {"fine": {"x": [None, True]}},
        ),
        (
            b'{"huge": 99999999999999999999, "lone": "\\ud800", "nan": NaN, "real": 1.5, "long": 9007199254740993}',
            {"real": 1.5, "long": 9007199254740993},
        ),
        (b'{"deep": ' + b"[" * 60 + b"]" * 60 + b', "shallow": []}', {"shallow": []}),
        (b"[1, 2]", {}),
        (b"\xff not JSON", {}),
    ],
    ids=["our own names", "names that are refused", "values that are refused", "too deep", "no object", "no JSON"],
)
async def test_what_cannot_be_a_field_is_left_out_and_the_payload_is_whole(
    mongodb_url: str, open_store: OpenStore, payload: bytes, kept: dict[str, object]
) -> None:
    store = open_store(mongodb_url)
    told = letter("a", payload=payload)
    await store.collect([told])
    ours = {"_id", "letter_id", "task_type", "processed_at", "dlq_metadata", "redrive"}
    document = document_of(mongodb_url, letter_id="a")

    assert {name: value for name, value in document.items() if name not in ours} == kept
    assert (await store.get("a")).letter == told


async def test_the_fields_of_a_large_payload_are_not_copied(mongodb_url: str, open_store: OpenStore) -> None:
    store = open_store(mongodb_url)
    told = letter("a", payload=json.dumps({"name": "x" * 1024 * 1024}).encode())
    await store.collect([told])

    assert "name" not in document_of(mongodb_url, letter_id="a")
    assert (await store.get("a")).letter == told


async def test_a_relapse_takes_the_place_of_its_document(mongodb_url: str, open_store: OpenStore) -> None:
    store = open_store(mongodb_url)
    await store.collect([a_ticket()])
    await store.note("a", "look", act=an_act("letters.note"))
    await store.collect([letter("a", generation=1, payload=b'{"other": 1}')])
    document = document_of(mongodb_url, letter_id="a")

    assert ("ticket_id" in document, document["other"], document["dlq_metadata"]["generation"]) == (False, 1, 1)
    assert (await store.get("a")).note == "look"


async def test_the_latest_ten_are_found_as_in_mongosh(mongodb_url: str, open_store: OpenStore) -> None:
    """`db.execution_tickets_dlq.find().sort({processed_at: -1}).limit(10)`."""
    store = open_store(f"{mongodb_url}?collection=execution_tickets_dlq")
    await store.collect([a_ticket(f"n{number:02}", at=AT + timedelta(minutes=number * 7 % 12)) for number in range(12)])
    with client(mongodb_url) as connected:
        cursor = connected.get_default_database()["execution_tickets_dlq"].find().sort({"processed_at": -1}).limit(10)
        found = [(one["processed_at"], one["ticket_id"]) for one in cursor]

    assert [at for at, _ in found] == [AT + timedelta(minutes=minute) for minute in range(11, 1, -1)]
    assert found[0][1] == "t-n05"


async def test_what_is_older_than_ninety_days_is_removed_as_in_mongosh(mongodb_url: str, open_store: OpenStore) -> None:
    """`db.execution_tickets_dlq.deleteMany({processed_at: {$lt: new Date(Date.now() - 90*24*60*60*1000)}})`."""
    store = open_store(f"{mongodb_url}?collection=execution_tickets_dlq")
    now = datetime.now(UTC)
    old, young = now - timedelta(days=91), now - timedelta(days=89)
    await store.collect(
        [a_ticket("old", at=old), a_ticket("older", at=old, fingerprint="f2"), a_ticket("young", at=young)]
    )
    with client(mongodb_url) as connected:
        tickets = connected.get_default_database()["execution_tickets_dlq"]
        done = tickets.delete_many({"processed_at": {"$lt": now - timedelta(milliseconds=90 * 24 * 60 * 60 * 1000)}})

    assert done.deleted_count == 2
    assert [row.letter_id for row in (await store.find(Query())).rows] == ["young"]
    assert (await store.stats()).total == 3
    recount = await store.recount()
    assert (recount.letters, recount.mended) == (1, 3)
    await check_counts(store)
    assert (await store.incident("f2")).state == "resolved"
    assert (await store.recount()).mended == 0


async def test_a_recount_finds_what_was_put_there_by_hand(mongodb_url: str, open_store: OpenStore) -> None:
    store = open_store(mongodb_url)
    await store.collect([letter("a"), letter("b"), letter("c", queue="mail")])
    with client(mongodb_url) as connected:
        letters = connected.get_default_database()["letters"]
        letters.update_one({"letter_id": "c"}, {"$set": {"dlq_metadata.queue": "post"}})
    await store.recount()

    await check_counts(store)
    assert (await store.stats()).by_queue == {"orders": 2, "post": 1}


async def test_a_letter_removed_by_hand_is_skipped_by_its_redrive(mongodb_url: str, open_store: OpenStore) -> None:
    store = open_store(mongodb_url)
    await _plan(store, "a", "b", "c")
    first = await store.claim("r1", step=0, limit=2)
    with client(mongodb_url) as connected:
        connected.get_default_database()["letters"].delete_many({"letter_id": {"$in": ["a", "c"]}})

    assert [one.letter_id for one in first] == ["a", "b"]
    assert [one.letter_id for one in await store.claim("r1", step=0, limit=10)] == ["b"]


async def test_the_ninety_days_are_also_a_matter_of_the_purge_verb(mongodb_url: str, open_store: OpenStore) -> None:
    store = open_store(mongodb_url)
    await store.collect([a_ticket("old"), a_ticket("young", failed_at=AT + timedelta(days=80))])
    act = an_act("letters.purge")

    assert await store.purge(Query(), before=AT + timedelta(days=1), limit=10, act=act) == 1
    assert [row.letter_id for row in (await store.find(Query())).rows] == ["young"]
    await store.collect([a_ticket("old")], [an_outcome("old", 1)])
    assert (await store.stats()).by_state == {OPEN.value: 1}


async def test_the_indexes_that_people_rely_on_are_there(mongodb_url: str, open_store: OpenStore) -> None:
    await open_store(mongodb_url).stats()
    with client(mongodb_url) as connected:
        indexes = connected.get_default_database()["letters"].index_information().values()
    keys = {tuple(name for name, _ in one["key"]): bool(one.get("unique")) for one in indexes}

    assert keys[("letter_id",)]
    assert keys.keys() >= {
        ("task_type",),
        ("processed_at",),
        ("dlq_metadata.dlq_published_at",),
        ("task_type", "dlq_metadata.error_type"),
    }


async def _plan(store: MongoStore, *names: str) -> None:
    await store.collect([letter(name) for name in names])
    items = [Planned(name, 1) for name in names]
    await store.create(a_redrive("r1", total=len(names)), items, act=an_act("letters.redrive"))
