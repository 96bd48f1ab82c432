from dataclasses import replace

import pytest

from redrive.core.errors import DeadLetterError, NotAllowed, StateConflict
from redrive.core.letter import DeadLetter
from redrive.core.stored import StoredLetter
from redrive.stores.memory import MemoryStore
from redrive.triage import audit, editor
from redrive.triage.desk import Desk
from tests.unit.triage.bench import Bench


async def test_an_edit_is_kept_beside_the_original_and_shows_the_difference() -> None:
    bench = Bench()
    await bench.collect(1, headers=(("trace", b"t1"),))

    edited = await editor.edit(bench.desk, "letter-0", body=b'{"order": 7}')
    stored = await bench.get()

    assert edited is not None
    assert edited.number == 1
    assert '-  "order": 0' in edited.difference
    assert '+  "order": 7' in edited.difference
    assert stored.letter.payload == b'{"order": 0}'
    assert editor.draft_of(stored) == (b'{"order": 7}', (("trace", b"t1"),))


async def test_headers_and_body_are_edited_on_their_own_and_each_builds_on_the_latest() -> None:
    bench = Bench()
    await bench.collect(1)
    await editor.edit(bench.desk, "letter-0", body=b"one")
    edited = await editor.edit(bench.desk, "letter-0", headers=(("retry", b"\xff"),))

    assert edited is not None
    assert edited.before_sha256 == edited.after_sha256
    assert "+retry: \\xff" in edited.difference
    assert editor.draft_of(await bench.get()) == (b"one", (("retry", b"\xff"),))


async def test_edits_at_the_same_time_do_not_lose_each_other() -> None:
    bench = Bench()
    await bench.collect(1)
    seen = await bench.get()

    class Slow(MemoryStore):
        async def get(self, letter_id: str) -> StoredLetter:
            return seen if letter_id == "letter-0" else await super().get(letter_id)

    stale = Slow(clock=bench.clock)
    await stale.collect([seen.letter])
    desk = Desk(stale, bench.clock, "sam")
    await editor.edit(desk, "letter-0", body=b"one")

    with pytest.raises(StateConflict, match="has changed: it is of version 2, not 1"):
        await editor.edit(desk, "letter-0", headers=(("a", b"b"),))


async def test_an_edit_may_name_the_version_that_it_is_of() -> None:
    bench = Bench()
    await bench.collect(1)
    await editor.edit(bench.desk, "letter-0", body=b"one", version=1)

    for body in (b"one", b"two"):
        with pytest.raises(StateConflict, match="of version 2, not 1"):
            await editor.edit(bench.desk, "letter-0", body=body, version=1)
    assert len((await bench.get()).edits) == 1


async def test_an_edit_that_changes_nothing_is_none() -> None:
    bench = Bench()
    await bench.collect(1)

    assert await editor.edit(bench.desk, "letter-0", body=b'{"order": 0}') is None
    assert (await audit.find(bench.desk)).rows == []


async def test_headers_of_our_own_are_locked() -> None:
    bench = Bench()
    await bench.collect(1)

    with pytest.raises(NotAllowed, match="rd-letter"):
        await editor.edit(bench.desk, "letter-0", headers=(("rd-letter", b"x"),))


async def test_the_audit_has_the_hashes_before_and_after() -> None:
    bench = Bench()
    await bench.collect(1)
    edited = await editor.edit(bench.desk, "letter-0", body=b"mended")
    assert edited is not None

    (record,) = (await audit.find(bench.desk, letter_id="letter-0")).rows
    assert (record.verb, record.before_sha256, record.after_sha256) == (
        "letters.edit",
        edited.before_sha256,
        edited.after_sha256,
    )


async def test_a_letter_without_a_copy_can_be_given_a_body() -> None:
    bench = Bench()
    await bench.collect(1)
    stored = await bench.get()
    await bench.store.collect([_without_payload(stored.letter)])

    with pytest.raises(DeadLetterError, match="keeps no payload"):
        await editor.edit(bench.desk, "digest", headers=())
    await editor.edit(bench.desk, "digest", body=b"found in a backup")

    assert editor.draft_of(await bench.get("digest")).body == b"found in a backup"


def _without_payload(letter: DeadLetter) -> DeadLetter:
    return replace(letter, letter_id="digest", payload=None)
